# Runs named steps one after another, one beside them, and sums up at the end. To be sourced.
#
#   step NAME SECONDS COMMAND...   runs COMMAND under a time limit, with a header and its duration
#   beside NAME SECONDS COMMAND... starts COMMAND, for once, beside the steps that follow
#   rejoin                         waits for it, prints what it printed, and counts it as a step
#   not_run NAME REASON            notes a step that is left out, and why
#   deadline SECONDS               no step may last longer than until then, counted from the start
#   conclude                       prints what ran, what failed and the test counts; non-zero if a step failed
#
# A command that exits with 77 could not run here; what it last said on stderr or stdout
# is the reason. Invariant: a failing step never keeps a later one from running, and
# never ends in success. The last line is `N passed, N failed`, summed over every test
# runner whose closing lines the steps printed.

steps_summary=()
steps_deadline_s=
steps_failed=0
steps_passed_tests=0
steps_failed_tests=0

deadline() { steps_deadline_s=$1; }

step() {
  local name=$1 limit_s begin=$SECONDS status log
  limit_s=$(bounded "$2")
  shift 2
  log=$(mktemp)
  printf '\n=== %s\n' "$name"
  timeout --kill-after=20 "$limit_s" "$@" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  count_tests "$log"
  note_step "$name" "$status" $((SECONDS - begin)) "$limit_s" "$log"
  rm -f "$log"
}

# The limit in seconds, or what is left until the deadline.
bounded() {
  local left_s=$1
  if [[ -n $steps_deadline_s ]]; then left_s=$((steps_deadline_s - SECONDS)); fi
  ((left_s > 1)) || left_s=1
  echo $(($1 < left_s ? $1 : left_s))
}

beside() {
  beside_name=$1
  beside_limit_s=$(bounded "$2")
  beside_begin=$SECONDS
  shift 2
  beside_log=$(mktemp)
  # A shell without job control starts what runs in the background deaf to Ctrl-C, and a
  # Python that is deaf to it from the start never raises KeyboardInterrupt.
  # In a session of its own, since each `timeout` within makes another process group.
  setsid timeout --kill-after=20 "$beside_limit_s" env --default-signal=INT,QUIT "$@" </dev/null >"$beside_log" 2>&1 &
  beside_pid=$!
}

rejoin() {
  local status=0
  wait "$beside_pid" || status=$?
  pkill -TERM -s "$beside_pid" || true # what a time limit has left
  printf '\n=== %s\n' "$beside_name"
  cat "$beside_log"
  count_tests "$beside_log"
  note_step "$beside_name" "$status" $((SECONDS - beside_begin)) "$beside_limit_s" "$beside_log"
  rm -f "$beside_log"
  beside_pid=
}

# For a trap: nothing goes on without whoever started it.
end_beside() {
  [[ -n ${beside_pid-} ]] || return 0
  pkill -TERM -s "$beside_pid" || true
  wait "$beside_pid" 2>/dev/null || true
}

note_step() {
  local name=$1 status=$2 took_s=$3 limit_s=$4 log=$5 outcome
  case $status in
    0) outcome="ok      $name, $took_s s" ;;
    77) outcome="not run $name: $(grep -m 1 '^error:' "$log" || tail -n 1 "$log")" ;;
    124 | 137) outcome="FAILED  $name: not done after $limit_s s" ;;
    *) outcome="FAILED  $name: exit status $status, $took_s s" ;;
  esac
  if [[ $outcome == FAILED* ]]; then steps_failed=$((steps_failed + 1)); fi
  steps_summary+=("$outcome")
  printf -- '--- %s\n' "$outcome"
  while read -r outcome; do steps_summary+=("        $outcome"); done < <(sed -n 's/^ *flaky: /flaky: /p' "$log" | sort -u)
}

not_run() {
  steps_summary+=("not run $1: $2")
  printf '\n=== %s\n--- not run: %s\n' "$1" "$2"
}

# pytest closes with `=== 3 failed, 97 passed in 1s ===`, cargo test with
# `test result: ok. 12 passed; 0 failed; ...`, other runners, and steps within a step, with
# `12 passed, 0 failed`. Steps within a step have counted all that was printed before. Of tests that
# were run again (scripts/again) the second outcome counts.
count_tests() {
  local own='^(=+ .* in [0-9.]+s( \([0-9:]+\))? =+|test result: .*|[0-9]+ passed, [0-9]+ failed)$' lines
  lines=$(sed 's/\x1b\[[0-9;]*m//g' "$1" | grep -E "$own")
  if grep -qE '^=== summary' "$1"; then lines=$(tail -n 1 <<<"$lines"); fi
  steps_passed_tests=$((steps_passed_tests + $(sum_before passed "$lines")))
  if grep -q '^=== again: ' "$1" && ! grep -q '^=== summary' "$1"; then
    lines=$(sed -e '1,/^=== again: /d' -e 's/\x1b\[[0-9;]*m//g' "$1" | grep -E "$own")
  fi
  steps_failed_tests=$((steps_failed_tests + $(sum_before '(failed|errors?)' "$lines")))
}

sum_before() {
  { grep -oE "[0-9]+ $1" <<<"$2" || true; } | awk '{ sum += $1 } END { print sum + 0 }'
}

conclude() {
  printf '\n=== summary, %d s\n' "$SECONDS"
  printf '%s\n' "${steps_summary[@]}"
  printf '%d passed, %d failed\n' "$steps_passed_tests" "$steps_failed_tests"
  ((steps_failed == 0))
}
