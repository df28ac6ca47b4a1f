# Runs named steps one after another, others in the background, and prints a summary. To be sourced.
#
#   step NAME SECONDS COMMAND...       runs COMMAND under a time limit, with a header and its duration
#   step_by_turn HALF TURN NAME SECONDS COMMAND...  the same, if TURN is even for half 0, odd for half 1, or empty
#   alongside NAME SECONDS COMMAND...  starts COMMAND in the background, next to the steps that follow
#   join_alongside NAME                waits for that command, prints its output, and counts it as a step;
#                                      the summary repeats that of its own steps
#   end_alongside                      ends all background commands; for a trap
#   not_run NAME REASON                notes that a step is left out, and why
#   deadline SECONDS                   ends every step so many seconds after the start at the latest
#   conclude                           prints what ran, what failed and the test counts; non-zero if a step failed
#
# A command that exits with 77 could not run on this machine; the reason is its first line that begins with
# `error:`, or else its last line. Invariant: after a failed step every later step still runs, and the whole fails.
# The last line is `N passed, N failed`, summed over every test runner whose closing lines the steps printed.

steps_summary=()
steps_deadline_s=
steps_failed=0
steps_passed_tests=0
steps_failed_tests=0
declare -A alongside_pids=() alongside_begins=() alongside_limits_s=() alongside_logs=() # by the command's name

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

step_by_turn() {
  local half=$1 turn=$2
  shift 2
  if [[ -z $turn ]] || ((turn % 2 == half)); then
    step "$@"
  else
    not_run "$1" "another part's turn; \`bash .ci/run --all\` runs every part"
  fi
}

# Prints the limit in seconds, or the time left until the deadline if that is shorter.
bounded() {
  local left_s=$1
  if [[ -n $steps_deadline_s ]]; then left_s=$((steps_deadline_s - SECONDS)); fi
  ((left_s > 1)) || left_s=1
  echo $(($1 < left_s ? $1 : left_s))
}

alongside() {
  local name=$1
  alongside_limits_s[$name]=$(bounded "$2")
  alongside_begins[$name]=$SECONDS
  shift 2
  alongside_logs[$name]=$(mktemp)
  # A shell without job control starts a background command with SIGINT ignored, and a Python that
  # starts so never raises KeyboardInterrupt: hence --default-signal. The command has a session of its own,
  # since each `timeout` in it makes another process group.
  setsid timeout --kill-after=20 "${alongside_limits_s[$name]}" env --default-signal=INT,QUIT "$@" \
    </dev/null >"${alongside_logs[$name]}" 2>&1 &
  alongside_pids[$name]=$!
}

join_alongside() {
  local name=$1 status=0 line
  local pid=${alongside_pids[$name]} log=${alongside_logs[$name]}
  wait "$pid" || status=$?
  unset "alongside_pids[$name]"
  pkill -TERM -s "$pid" || true # processes that a time limit has left behind
  printf '\n=== %s\n' "$name"
  cat "$log"
  count_tests "$log"
  note_step "$name" "$status" $((SECONDS - alongside_begins[$name])) "${alongside_limits_s[$name]}" "$log"
  while read -r line; do steps_summary+=("        $line"); done < <(last_summary "$log")
  rm -f "$log"
}

# For a trap: no background command outlives the script that started it.
end_alongside() {
  local pid
  for pid in "${alongside_pids[@]}"; do
    pkill -TERM -s "$pid" || true
    wait "$pid" 2>/dev/null || true
  done
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
  while read -r outcome; do steps_summary+=("        $outcome"); done < <(sed -nE 's/^ *(flaky|failed): /\1: /p' "$log" | sort -u)
}

# Prints the lines of the last summary that a step printed about its own steps.
last_summary() {
  awk '/^=== summary/ { lines = ""; is_in = 1; next } is_in && /^[0-9]+ passed, [0-9]+ failed$/ { is_in = 0 }
    is_in && !/(flaky|failed):/ { lines = lines $0 "\n" } END { printf "%s", lines }' "$1"
}

not_run() {
  steps_summary+=("not run $1: $2")
  printf '\n=== %s\n--- not run: %s\n' "$1" "$2"
}

# Adds the counts of a step's test runners. pytest closes with `=== 3 failed, 97 passed in 1s ===`, cargo test with
# `test result: ok. 12 passed; 0 failed; ...`, other runners, and steps within a step, with `12 passed, 0 failed`.
# The closing line of steps within a step includes every count printed before it. If tests were run again
# (scripts/again), the second outcome counts.
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
