#!/bin/sh
# Start a YugabyteDB universe of three nodes on this machine, for `make test-yugabyte`; needs yugabyted (v2025.1 or later).
#
#   tools/yugabyte_universe.sh start     start it in YB_HOME (build/yugabyte), and print its address
#   tools/yugabyte_universe.sh stop      stop it, and remove its data
#
# Linux has 127.0.0.2 and 127.0.0.3 without further ado; macOS needs `sudo ifconfig lo0 alias 127.0.0.2 up` for each.
# YugabyteDB cannot be installed on the machine on which Windlass is developed: this script was checked, and not run.
set -eu

home=${YB_HOME:-build/yugabyte}
nodes="1 2 3"
# READ COMMITTED is an option of universes before v2025.2; without it the store refuses to open.
flags="yb_enable_read_committed_isolation=true"

if ! command -v yugabyted > /dev/null; then
    echo "yugabyted is not on the PATH: https://docs.yugabyte.com/stable/quick-start/" >&2
    exit 1
fi

start() {
    mkdir -p "$home"
    join=""
    for node in $nodes; do
        # The first word of $join is an option, the second its value; of the first node there are none.
        # shellcheck disable=SC2086
        yugabyted start --advertise_address="127.0.0.$node" --base_dir="$home/node$node" \
            --cloud_location="local.zone.$node" --tserver_flags="$flags" $join
        join="--join=127.0.0.1"
    done
    yugabyted configure data_placement --fault_tolerance=zone --base_dir="$home/node1"
    echo "yugabyte://yugabyte@127.0.0.1,127.0.0.2,127.0.0.3/yugabyte"
}

stop() {
    for node in $nodes; do
        yugabyted destroy --base_dir="$home/node$node" || true
    done
    rm -rf "$home"
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    *)
        echo "usage: $0 start|stop" >&2
        exit 2
        ;;
esac
