#compdef @PROGRAM@
# Completions of @PROGRAM@ for zsh. To have them: source <(@PROGRAM@ --completions zsh)

@FUNCTION@_command() {
    local -a own=(@SUBCOMMANDS@)
    # Only the first word of all is ours.
    (( CURRENT == 2 && $#own )) && _describe -t subcommands 'use of @PROGRAM@' own
    _command_names -e
}

@FUNCTION@() {
    # From the command's name on the line is the command's.
    _arguments -s -S -A '-*' : \
        @OPTIONS@ \
        '(-)1:command:@FUNCTION@_command' \
        '*::argument:_normal'
}

if [[ $funcstack[1] == @FUNCTION@ ]]; then
    @FUNCTION@ "$@"
else
    compdef @FUNCTION@ @PROGRAM@
fi
