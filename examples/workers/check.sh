# What `windlass check-worker` asks of the worker in shell:
#
#   BASH_ENV=check.sh TYPES=check.echo,check.fail,check.slow windlass check-worker -- ./worker.sh
handle_check_echo() { jq -c .value; }
handle_check_fail() { jq -r .message >&2; return 1; }
handle_check_slow() { sleep "$(jq .seconds)"; echo '"done"'; }
