# Ends a sandbox when its owner does. Standard input is a pipe that the owner holds: it closes when
# the owner ends, however that happens. The word "keep" leaves the servers running instead.
folder=$1
trap '' HUP INT TERM
if read -r word && [ "$word" = keep ]; then
    exit 0
fi
# Marked before the ids are read: a server being launched now sees the mark, or we see its id.
: >"$folder/closing"

# Ids are used again: a process is ours only while its command line names the folder.
is_ours() {
    [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF "$folder"
}

killed=
for file in "$folder"/run/*.pid; do
    read -r pid <"$file" 2>/dev/null || continue
    is_ours "$pid" || continue
    # A busy backend of PostgreSQL would not notice for a while that its postmaster is gone.
    children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
    # shellcheck disable=SC2086
    kill -9 "$pid" $children 2>/dev/null
    killed="$killed $pid"
done
for pid in $killed; do
    tries=0
    while is_ours "$pid" && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
done
# Erlang starts a port mapper where none answers, also one that has just been killed. Whatever the
# servers have started has the folder for its home.
tries=0
while left=$(grep -lsF "HOME=$folder" /proc/[0-9]*/environ) || true
    [ -n "$left" ] && [ "$tries" -lt 100 ]; do
    for file in $left; do
        file=${file#/proc/}
        kill -9 "${file%/environ}" 2>/dev/null
    done
    tries=$((tries + 1))
    sleep 0.05
done
# A backend may still write a last file.
rm -rf "$folder" 2>/dev/null || { sleep 1; rm -rf "$folder"; }
