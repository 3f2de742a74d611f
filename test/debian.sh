# shellcheck shell=bash
# What builds trees of Debian packages shares: the machine's own sources, and steps of minutes that
# show their progress. Source it after lab.sh; it runs nothing.

# machine_sources DIR: the machine's own sources of the suite SUITE, as they are (mirror, options,
# keys). Its other repositories are left out. A machine without sources of this suite gets
# mmdebstrap's default.
machine_sources() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    grep -E "^deb\s+(\[[^]]*\]\s+)?\S+\s+$SUITE(-updates|-security)?\s+(\S+\s+)*main(\s|$)" \
      >"$1/machine.list" || true
  awk -v RS= -v ORS='\n\n' \
    -v suites="(^|\n)Suites:([^\n]*[ \t])?$SUITE(-updates|-security)?([ \t\n]|$)" '
    $0 ~ suites && /(^|\n)Types:([^\n]*[ \t])?deb([ \t\n]|$)/ &&
    /(^|\n)Components:([^\n]*[ \t])?main([ \t\n]|$)/ && !/(^|\n)Enabled:[ \t]*no/' \
    /dev/null /etc/apt/sources.list.d/*.sources 2>/dev/null >"$1/machine.sources" || true
  find "$1" -name 'machine.*' -empty -delete
  compgen -G "$1/machine.*" >/dev/null || other_release "$1"
}

# other_release DIR: the main archive of another release, from the machine's own mirror. Its
# security archive is left out: what the index of an old one names may be gone.
other_release() {
  local own
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ -n "$own" ] && [ "$own" != "$SUITE" ] || return 0
  SUITE=$own machine_sources "$1"
  [ ! -e "$1/machine.list" ] ||
    sed -i -E "/\s$own-/d; s/\s$own\s/ $SUITE /" "$1/machine.list"
  [ ! -e "$1/machine.sources" ] ||
    sed -i -E "/^Suites:/ { s/\b$own-[a-z-]+//g; s/\b$own\b/$SUITE/ }" "$1/machine.sources"
  awk -v RS= -v ORS='\n\n' '!/(^|\n)Suites:[ \t]*(\n|$)/' "$1/machine.sources" \
    >"$1/kept" 2>/dev/null && mv "$1/kept" "$1/machine.sources"
  find "$1" -name 'machine.*' -empty -delete
}

# How the machine reaches them: proxies, retries, a clock that disagrees with the mirror.
machine_apt_conf() {
  apt-config dump |
    grep -E '^Acquire::(https?|Check-Valid-Until|Check-Date|Retries|ForceIPv[46])[: ]' || true
  printf '%s\n' 'Acquire::Languages "none";' 'APT::Install-Recommends "false";'
  # Of these a mirror may be weeks behind.
  [[ $SUITE != @(forky|sid) ]] || echo 'Acquire::Check-Valid-Until "false";'
}

# with_progress WHAT CMD...: the steps are minutes long; the lines of apt and dpkg in LOG are
# counted every five seconds. In a process group of its own, so that end_step can end all of it.
with_progress() {
  local what=$1 tick=0
  shift
  set -m
  # Without the files that the callers have open: apt has sh write to one that mmdebstrap opens,
  # and dash knows none above 9.
  "$@" >"$LOG" 2>&1 </dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  step=$!
  set +m
  while alive "$step"; do
    sleep 0.2
    (((tick += 1) % 25)) || say "  $what: $(progress)"
  done
  wait "$step" || {
    tail -n 25 "$LOG" >&2
    die "$what failed; all of it: $LOG"
  }
  step=
}

progress() {
  awk '/ newly installed/ { all += $3 } /^Get:/ { got++ } /^Unpacking / { unpacked++ }
    /^Setting up / { set++ }
    END { if (!all) print "reading package lists"; else
      printf "of %d packages %d fetched, %d unpacked, %d set up\n",
        all, got < all ? got : all, unpacked, set }' "$LOG"
}

# end_step: of an interrupted command, the step that runs.
end_step() {
  [ -n "${step:-}" ] || return 0
  kill -TERM -- "-$step" 2>/dev/null || true
  for _ in $(seq 50); do
    alive "$step" || break
    sleep 0.1
  done
  kill -KILL -- "-$step" 2>/dev/null || true
}
