# Completions of @PROGRAM@ for fish. To have them: @PROGRAM@ --completions fish | source

# Whether no command has been named yet: from its name on the line is the command's.
function _@FUNCTION@_at_options
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        set -l word $words[1]
        set -e words[1]
        if test "$word" = --
            return 1
        else if contains -- "$word" @WITH_VALUE@
            set -q words[1]
            and set -e words[1]
        else if not string match -q -- '-*' "$word"
            return 1
        end
    end
    return 0
end

function _@FUNCTION@_at_first_word
    test (count (commandline -opc)) -eq 1
end

complete -c @PROGRAM@ -x -a '(__fish_complete_subcommand @WITH_VALUE@)'
@OPTIONS@
