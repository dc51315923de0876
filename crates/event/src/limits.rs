//! The limits of what may be recorded. Each is a CHECK in the database too.

/// Longest tenant id, in bytes.
pub const TENANT_BYTES: usize = 63;

/// Longest pool or effect name, in bytes.
pub const POOL_BYTES: usize = 32;

/// Longest event type or aggregate type, in bytes.
pub const TYPE_BYTES: usize = 100;

/// Longest aggregate id, source, content type or header name, in bytes. An AMQP short string
/// holds no more (AMQP 0-9-1, section 4.2.5.3).
pub const NAME_BYTES: usize = 255;

/// Longest value of one caller-given header, in bytes.
pub const HEADER_VALUE_BYTES: usize = 4 * 1024;

/// Most bytes of all caller-given headers and the trace context together, names and values.
/// AMQP never splits a header frame, so a table near `frame_max` (131,072) costs the connection.
pub const HEADERS_BYTES: usize = 16 * 1024;

/// Largest payload of an event, in bytes.
pub const PAYLOAD_BYTES: usize = 2 * 1024 * 1024;

/// Largest body of an HTTP request to the producer, in bytes.
pub const HTTP_BODY_BYTES: usize = 1024 * 1024;
