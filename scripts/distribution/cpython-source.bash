# Fetches CPython's source from Debian's mirror, and what it takes to compile it. To be sourced inside scripts/debian-root,
# by a script that has set KEPT, the directory of the root where sources stay.
#
#   install_needed            the packages that a build needs
#   have_source VERSION       unpacks the source of 3.14 or 3.13 to KEPT/VERSION/source, unless it is there
#   have_library NAME         unpacks the source of a library of sid's to KEPT/NAME, unless it is there
#
# Invariant: a source that was unpacked half-way is never taken for a whole one.

readonly LOG=$KEPT/download.log
readonly NEEDED=(
  dpkg-dev xz-utils make pkg-config
  libssl-dev libffi-dev zlib1g-dev libbz2-dev liblzma-dev libzstd-dev libsqlite3-dev libreadline-dev libncurses-dev uuid-dev
)
declare -rA SUITES=([3.14]=sid [3.13]="forky trixie")
# What a mirror's pool keeps, whatever its lists name, and the SHA-256 that its .dsc gives.
declare -rA POOL=(
  [3.14]="python3.14_3.14.7.orig.tar.xz 3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81"
)

install_needed() {
  apt-get -o Acquire::Check-Valid-Until=false update
  apt-get install -y --no-install-recommends "${NEEDED[@]}"
}

# In /tmp of the root nothing stays, so the tree is where it is kept.
have_source() {
  local directory=$KEPT/$1/source suite
  mkdir -p "$directory"
  [[ ! -e $directory/.unpacked ]] || return 0
  for suite in ${SUITES[$1]}; do
    if (cd "$directory" && download "python$1" "$suite") >"$LOG" 2>&1; then
      unpack "$directory"
      return
    fi
  done
  [[ -n ${POOL[$1]-} ]] && (cd "$directory" && download_from_pool "python$1" "${POOL[$1]}") >>"$LOG" 2>&1 && unpack "$directory"
}

have_library() {
  local directory=$KEPT/$1
  mkdir -p "$directory"
  [[ ! -e $directory/.unpacked ]] || return 0
  (cd "$directory" && download "$1" sid) >"$LOG" 2>&1 && unpack "$directory"
}

unpack() {
  tar --extract --strip-components=1 --directory "$1" --file "$1"/*.orig.tar.*z && touch "$1/.unpacked"
}

# The authors' archive alone: a mirror may lack Debian's changes to it. Lists of its own, so that the root's packages go on
# coming from one suite.
download() {
  local lists=$KEPT/lists/$2 mirror options
  mirror=$(mirror)
  mkdir -p "$lists/partial"
  echo "deb-src $mirror $2 main" >"$lists.list"
  options=(
    -o "Dir::Etc::SourceList=$lists.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$lists" -o Acquire::Check-Valid-Until=false
  )
  apt-get --quiet "${options[@]}" update && apt-get --quiet "${options[@]}" source --download-only --tar-only "$1"
}

# The file of package $1 whose name and SHA-256 are $2.
download_from_pool() {
  local name=${2% *} sum=${2#* }
  /usr/lib/apt/apt-helper download-file "$(mirror)/pool/main/p/$1/$name" "$name" "SHA256:$sum"
}

mirror() { sed -n 's/^deb \([^ ]*\) .*/\1/p;T;q' /etc/apt/sources.list; }
