# Makes .venv from the lock files; to be sourced by ./run, ./test and .ci/run.
#
#   set_up runtime    what src/berth imports
#   set_up dev        that, and what the checks need
#
# Uses uv where there is one, else python3 -m venv and pip. Does nothing when nothing changed. Leaves the
# folder in $root and the environment in $venv.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv

set_up() {
    local extent=$1 state
    state=$(_state) || return
    _is_set_up "$extent" "$state" && return
    _set_up_alone "$extent" "$state"
}

# What the environment depends on: where it stands, the locks and the project's own metadata.
_state() {
    printf '%s\n' "$root" "${PYTHON:-}"
    (cd "$root" && cksum pyproject.toml requirements/runtime.in requirements/runtime.txt requirements/dev.txt)
}

# dev holds runtime, so either stamp will do for that.
_is_set_up() {
    local extent=$1 state=$2 stamp
    [[ -x $venv/bin/python && -x $venv/bin/berth ]] || return
    for stamp in dev "$extent"; do
        [[ -f $venv/.set-up-$stamp && $(<"$venv/.set-up-$stamp") == "$state" ]] && return
    done
    return 1
}

# A sub-shell: the lock goes when it ends.
_set_up_alone() (
    extent=$1 state=$2
    _lock || exit
    # Another may have done it while this one waited.
    _is_set_up "$extent" "$state" && exit
    [[ ! -f $venv/.set-up-dev ]] || extent=dev
    _python || exit
    uv=$(type -P uv || true)
    echo "Setting up $venv with $python and ${uv:-pip}" >&2
    _quietly _make_venv || exit
    _quietly _install || exit
    rm -f "$venv"/.set-up-*
    printf '%s\n' "$state" >"$venv/.set-up-$extent"
)

_lock() {
    if type -P flock >/dev/null; then
        exec 9<"$root/scripts/setup.sh" && flock 9
        return
    fi
    local lock=$root/.venv.lock owner
    until mkdir "$lock" 2>/dev/null; do
        owner=$(cat "$lock/pid" 2>/dev/null || true)
        # Left behind by one that was killed.
        if [[ -n $owner ]] && ! kill -0 "$owner" 2>/dev/null; then
            rm -rf "$lock"
        else
            sleep 0.2
        fi
    done
    echo $$ >"$lock/pid"
    # Expanded now: the name is local.
    # shellcheck disable=SC2064
    trap "rm -rf '$lock'" EXIT
}

# Leaves a Python of at least 3.11 in $python.
_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
        python=$(type -P "$candidate" || true)
        if [[ -n $python ]] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            return
        fi
        [[ -z ${PYTHON:-} ]] || break
    done
    if [[ -n ${PYTHON:-} ]]; then
        echo "Berth needs Python 3.11 or newer, and PYTHON=$PYTHON is not one." >&2
    else
        echo "Berth needs Python 3.11 or newer, and found none as python3.13, python3.12, python3.11 or" \
            "python3. Set PYTHON to one." >&2
    fi
    return 1
}

# Kept when it is of this place and this Python, so that a change of the locks need not start over.
_make_venv() {
    local made_for=$root:$python
    if [[ -x $venv/bin/python && -f $venv/.made-for && $(<"$venv/.made-for") == "$made_for" ]]; then
        "$venv/bin/python" -c '' && return
    fi
    if [[ -n $uv ]]; then
        "$uv" venv --clear --python "$python" "$venv"
    else
        "$python" -m venv --clear "$venv"
    fi && echo "$made_for" >"$venv/.made-for"
}

_install() {
    local install
    if [[ -n $uv ]]; then
        install=("$uv" pip install --python "$venv/bin/python")
    else
        # uv makes environments without pip; one made by it may be left from before.
        "$venv/bin/python" -m pip --version || "$venv/bin/python" -m ensurepip || return
        install=("$venv/bin/python" -m pip --disable-pip-version-check install)
    fi
    "${install[@]}" --require-hashes -r "$root/requirements/$extent.txt" || return
    # The build backend came with the lock: nothing is fetched unchecked.
    "${install[@]}" --no-deps --no-build-isolation -e "$root"
}

# Output only of what fails.
_quietly() {
    local output
    output=$("$@" 2>&1) || {
        printf '%s\nSetting up failed.\n' "$output" >&2
        return 1
    }
}
