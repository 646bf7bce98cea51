"""What shells run to complete `umdqn`: they ask `umdqn completion --line` for words."""

from __future__ import annotations

# Bash splits words at `=` and `:`; of each candidate it wants what follows its last split.
_BASH = r"""_umdqn() {
    local line="${COMP_LINE:0:COMP_POINT}" word="${COMP_WORDS[COMP_CWORD]}" current cut found
    [[ "$word" == [=:] ]] && word=""
    current="${line##*[[:space:]]}"
    cut="${current%"$word"}"
    COMPREPLY=()
    while IFS= read -r found; do
        found="${found%%$'\t'*}"
        COMPREPLY+=("${found#"$cut"}")
    done < <(umdqn completion --line "$line" 2>/dev/null)
}
complete -o default -F _umdqn umdqn
"""

_ZSH = r"""#compdef umdqn
_umdqn() {
    local -a lines names shown
    lines=("${(@f)$(umdqn completion --line "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
    lines=(${lines:#})
    if (( ! ${#lines} )); then
        _files
        return
    fi
    names=("${(@)lines%%$'\t'*}")
    shown=("${(@)lines/$'\t'/  }")
    compadd -l -d shown -a names
}
if [[ "${funcstack[1]}" == _umdqn ]]; then
    _umdqn "$@"
else
    compdef _umdqn umdqn
fi
"""

_FISH = r"""function __umdqn_complete
    set -l found (umdqn completion --line (commandline -cp | string collect) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c umdqn -f -a '(__umdqn_complete)'
"""

SCRIPTS: dict[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""Scripts by shell."""
