# Completions of @PROGRAM@ for bash. To have them: source <(@PROGRAM@ --completions bash)
@FUNCTION@() {
    local cur=$2 word at=1 ended=
    COMPREPLY=()
    # A word with `=` or `:` reaches us in pieces, and where nothing is behind that character it is the word.
    [[ $cur != [=:] ]] || cur=
    while ((at < COMP_CWORD)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            ended=yes
            ((at += 1))
            break
        elif [[ $word =~ ^--(@LONG_WITH_VALUE@)$ || $word =~ ^-[@LETTERS@]*[@LETTERS_WITH_VALUE@]$ ]]; then
            [[ ${COMP_WORDS[at + 1]} != = ]] || ((at += 1))
            ((at += 2))
            while ((at <= COMP_CWORD)) && [[ ${COMP_WORDS[at]} == [=:]* ]]; do
                ((at += 2))
            done
            ((at > COMP_CWORD)) || continue
            case $word in
                @VALUES@
            esac
            return
        elif [[ $word == -?* ]]; then
            ((at += 1))
        else
            break
        fi
    done

    local own=
    ((COMP_CWORD > 1)) || own='@SUBCOMMANDS@'
    if ((at < COMP_CWORD)); then
        # From here on the line is the command's.
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "$at"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        fi
    elif [[ -z $ended && $cur == -* ]]; then
        COMPREPLY=($(compgen -W '@OPTIONS@' -- "$cur"))
    elif [[ -z $ended && -z $cur ]]; then
        # Not every command there is: what is ours could not be found among them.
        COMPREPLY=($(compgen -W "$own @OPTIONS@"))
    else
        mapfile -t COMPREPLY < <(compgen -W "$own" -- "$cur"; compgen -c -- "$cur")
        [[ $cur != */* ]] || compopt -o filenames
    fi
}
complete -F @FUNCTION@ -o bashdefault -o default @PROGRAM@
