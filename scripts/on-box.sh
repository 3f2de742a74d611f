# shellcheck shell=sh
# What the programs share that run on a storage box.

# end CODE TEXT...: ends the run with a message for the claim.
end() {
  code=$1
  shift
  echo "claim: $*" >&2
  exit "$code"
}

# misconfigured TEXT...: ends the run with a message for the administrator. Its code promises that
# nothing was made.
misconfigured() {
  echo "$*" >&2
  exit 78
}
