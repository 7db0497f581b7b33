#!/usr/bin/env bash
# A Windlass worker in shell: one job at a time, with curl and jq.
#
#   WINDLASS_SERVER=https://jobs.example.net WINDLASS_TOKEN=wl_… ./worker.sh
#
# The token needs the scope `work`. The handler of a type is a function named handle_TYPE, with _ for each other
# character; it reads the payload from standard input and prints its result, which is JSON.
set -u
server=${WINDLASS_SERVER:-http://127.0.0.1:8000}
queues=${QUEUES:-default}
types=${TYPES:-mail.welcome}
folder=$(mktemp -d)
stopping=
trap 'stopping=1' INT TERM
trap 'rm -rf "$folder"' EXIT

handle_mail_welcome() {
  jq -c '{sent: .user_id}'
}

new_id() { worker=$(cat /proc/sys/kernel/random/uuid); claim=0; }

# post FILE PATH BODY: the answer in FILE.answer, the status in $status; 000: the server was not reached. The token goes
# through a pipe, and the body through a file: arguments of a process are short, and for everyone to see.
post() {
  printf '%s' "$3" >"$1.body"
  status=$(printf 'header = "authorization: Bearer %s"\n' "$WINDLASS_TOKEN" |
    curl -sS --config - -o "$1.answer" -w '%{http_code}' --max-time 60 \
      -H 'content-type: application/json' --data-binary "@$1.body" "$server/api/v1$2" 2>/dev/null) || status=000
}

# persist FILE PATH BODY: the same, until the server has answered. Fails without a lease.
persist() {
  local pause=0.2
  while :; do
    post "$1" "$2" "$3"
    case $status in
      2*) return 0 ;;
      409) return 1 ;;
      4*) jq -r '.title' "$1.answer" >&2; [ "$status" = 429 ] || exit 1 ;;
    esac
    sleep $pause
    pause=1  # well below a lease
  done
}

end_handler() { pkill -P "$1"; kill "$1"; } 2>/dev/null

# Beat while the job runs; end its handler if it is to be cancelled, or if the lease is lost.
beat() {
  while sleep "$beat_after"; do
    persist "$folder/beat" /claims/beat "$(jq -nc --arg w "$worker" '{worker: $w}')" || { end_handler "$1"; return; }
    if jq -e --arg id "$id" '.cancels[] | select(.id == $id)' "$folder/beat.answer" >/dev/null; then
      touch "$folder/cancelled"
      end_handler "$1"
    fi
  done
}

# End the handler when its time is over.
limit() {
  sleep "$timeout"
  echo "longer than its timeout of $timeout s" >>"$folder/errors"
  end_handler "$1"
}

# failed TYPE: the settlement of an attempt with these errors.
failed() {
  jq -nc --arg type "$1" --rawfile text "$folder/errors" '{outcome: "failed", error: {type: $type, message: $text[:4000]}}'
}

settle() {
  persist "$folder/settled" /claims/settle "$(jq -c --arg w "$worker" --arg id "$id" --argjson attempt "$attempt" \
    '{worker: $w, settlements: [{id: $id, attempt: $attempt} + .]}' "$folder/settlement")"
}

run() {
  id=$(jq -r .id "$folder/job"); attempt=$(jq .attempt "$folder/job"); type=$(jq -r .type "$folder/job")
  timeout=$(jq '.timeout // empty' "$folder/job"); beat_after=$(jq .beat_after "$folder/claim.answer")
  rm -f "$folder/cancelled"
  jq -c .payload "$folder/job" | "handle_${type//[^A-Za-z0-9]/_}" >"$folder/result" 2>"$folder/errors" &
  local handler=$!
  beat $handler & local beating=$!; disown
  local limiting=
  if [ -n "$timeout" ]; then limit $handler & limiting=$!; disown; fi
  wait $handler; local code=$?
  while kill -0 $handler 2>/dev/null; do wait $handler; code=$?; done  # a signal interrupts the first wait
  [ -z "$limiting" ] || end_handler "$limiting"
  if [ -e "$folder/cancelled" ]; then
    echo '{"outcome": "cancelled"}'
  elif [ $code != 0 ]; then
    failed "exit $code"
  else
    jq -cs 'if length > 1 then error("more than one result") else {outcome: "completed", result: .[0]} end' \
      "$folder/result" 2>"$folder/errors" || failed InvalidResult
  fi >"$folder/settlement"
  if ! settle; then
    new_id
  elif jq -e '.settlements[0].answer == "invalid"' "$folder/settled.answer" >/dev/null; then
    # What the server does not take, such as a result that is too large, has failed.
    jq -r '.settlements[0].problem' "$folder/settled.answer" >"$folder/errors"
    failed InvalidResult >"$folder/settlement"
    settle || new_id
  fi
  end_handler "$beating"  # not before: the lease must last until the settlement is answered
}

new_id
while [ -z "$stopping" ]; do
  claim=$((claim + 1))
  body=$(jq -nc --arg w "$worker" --argjson n $claim --arg queues "$queues" --arg types "$types" --arg host "$HOSTNAME" \
    '{worker: $w, claim: $n, queues: ($queues / ","), types: ($types / ","), limit: 1, wait: 20, host: $host}')
  persist "$folder/claim" /claims "$body" || { new_id; continue; }
  if jq -e '.jobs[0]' "$folder/claim.answer" >"$folder/job"; then run; fi
done
post "$folder/end" /claims/end "$(jq -nc --arg w "$worker" '{worker: $w}')"
