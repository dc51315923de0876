//! The lines of a file of any size, each of bounded length.

use std::io::{self, BufRead};

/// A line with its number, counted from 1, and how many bytes the file has up to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: u64,
    /// None if it is longer than allowed.
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) read: u64,
}

/// Reads lines of at most so many bytes; the rest of a longer one is skipped.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    most: usize,
    number: u64,
    read: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R, most: usize) -> Self {
        Self {
            source,
            most,
            number: 0,
            read: 0,
        }
    }

    /// The next line that has something on it.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let Some(line) = self.any()? else {
                return Ok(None);
            };
            let blank = |bytes: &Vec<u8>| bytes.iter().all(u8::is_ascii_whitespace);
            if !line.bytes.as_ref().is_some_and(blank) {
                return Ok(Some(line));
            }
        }
    }

    fn any(&mut self) -> io::Result<Option<Line>> {
        let (mut bytes, mut too_long, mut started) = (Vec::new(), false, false);
        loop {
            let part = self.source.fill_buf()?;
            if part.is_empty() {
                break;
            }
            started = true;
            let end = part.iter().position(|byte| *byte == b'\n');
            let text = &part[..end.unwrap_or(part.len())];
            too_long |= bytes.len() + text.len() > self.most;
            if !too_long {
                bytes.extend_from_slice(text);
            }
            let used = end.map_or(part.len(), |end| end + 1);
            self.source.consume(used);
            self.read += used as u64;
            if end.is_some() {
                break;
            }
        }
        if !started {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Line {
            number: self.number,
            bytes: (!too_long).then_some(bytes),
            read: self.read,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_keep_their_numbers_and_long_ones_are_skipped() {
        let text = "a\n\n  \n12345678\n123456789\nlast";
        let mut lines = Lines::new(BufReader::with_capacity(3, text.as_bytes()), 8);
        let mut found = Vec::new();
        while let Some(line) = lines.next().expect("readable") {
            let text = line
                .bytes
                .map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
            found.push((line.number, text, line.read));
        }
        let text = |text: &str| Some(text.to_owned());
        let wanted = [
            (1, text("a"), 2),
            (4, text("12345678"), 15),
            (5, None, 25),
            (6, text("last"), 29),
        ];
        assert_eq!(found, wanted);
    }
}
