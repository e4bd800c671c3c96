-- completion.lua - the tool `fnn completion SHELL`: prints what makes a shell
-- complete the command line of fnn.
--
-- Behind a script's name it calls the function that `SCRIPT --completion`
-- defines (fnn/cli/completion.lua), if that has been read.

local options = {  -- with what follows them
  { "--threads", "N" }, { "--device", "NAME", "cpu cuda" }, { "--seed", "N" },
  { "--memory-limit", "SIZE" }, { "--version" }, { "--help" },
  { "-e", "STAT" }, { "-i" }, { "-l", "MOD" }, { "-v" }, { "-E" }, { "-W" },
}
local tools = "completion env"

local shells = {}

-- All options, or those that have a value.
local function names(valued)
  local list = {}
  for _, o in ipairs(options) do
    if not valued or o[2] then list[#list + 1] = o[1] end
  end
  return list
end

function shells.bash()
  return ([[
# bash completion of fnn
_fnn () {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      VALUED) ((i++)) ;;
      -*|=) ;;
      *) break ;;
    esac
  done
  if ((i < COMP_CWORD)); then
    word=${word##*/}
    word=_fnn_script_${word//[^a-zA-Z0-9]/_}
    if declare -F "$word" >/dev/null; then "$word"
    elif [ "$word" = _fnn_script_completion ]; then
      COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur"))
    else COMPREPLY=($(compgen -f -- "$cur")); fi
    return
  fi
  [ "$cur" = = ] && cur=
  [ "$prev" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}
  case $prev in
    --device) COMPREPLY=($(compgen -W 'cpu cuda' -- "$cur")) ; return ;;
    VALUED) COMPREPLY=() ; return ;;
  esac
  case $cur in
    -*) COMPREPLY=($(compgen -W 'OPTIONS' -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W 'TOOLS' -- "$cur")
                  $(compgen -f -X '!*.lua' -- "$cur")
                  $(compgen -d -- "$cur")) ;;
  esac
}
complete -o filenames -F _fnn fnn]]):gsub("%u+", {
    VALUED = table.concat(names(true), "|"), TOOLS = tools,
    OPTIONS = table.concat(names(), " "),
  })
end

function shells.zsh()
  local lines = {}
  for _, o in ipairs(options) do
    local equals = o[1]:find "^%-%-" and "=" or "+"
    lines[#lines + 1] = ("    '%s%s' \\"):format(o[1], o[2] and
      equals .. ":" .. o[2] .. ":" .. (o[3] and "(" .. o[3] .. ")" or " ") or
      "")
  end
  return ([=[
#compdef fnn
_fnn () {
  local state
  _arguments \
LINES
    '1: :->script' '*:: :->rest'
  case $state in
    script) _alternative 'tools:tool:(TOOLS)' \
              'files:script:_files -g "*.lua"' ;;
    rest)
      local name=_fnn_script_${${words[1]:t}//[^a-zA-Z0-9]/_}
      if (($+functions[$name])); then $name
      elif [[ $words[1] = completion ]]; then compadd bash zsh fish
      else _files; fi ;;
  esac
}
compdef _fnn fnn]=]):gsub("%u+", {
    LINES = table.concat(lines, "\n"), TOOLS = tools,
  })
end

function shells.fish()
  local lines = {
    "# fish completion of fnn",
    "complete -c fnn -n __fish_is_first_token -a '" .. tools .. "'",
    "complete -c fnn -n '__fish_seen_subcommand_from completion' -x " ..
    "-a 'bash zsh fish'",
  }
  for _, o in ipairs(options) do
    local long = o[1]:match "^%-%-(.*)"
    lines[#lines + 1] = "complete -c fnn -n __fish_is_first_token " ..
      (long and "-l " .. long or "-s " .. o[1]:sub(2)) ..
      (o[2] and " -x" or "") .. (o[3] and " -a '" .. o[3] .. "'" or "")
  end
  return table.concat(lines, "\n")
end

local shell = ...
if shell == "--help" or shell == "-h" then
  print "usage: fnn completion bash|zsh|fish\n\z
    Prints what makes the shell complete fnn: eval \"$(fnn completion bash)\""
elseif shells[shell] and select("#", ...) == 1 then
  print((shells[shell]()))
else
  io.stderr:write("fnn completion: expected bash, zsh or fish, got ",
                  shell and "'" .. table.concat({ ... }, " ") .. "'" or
                  "nothing", "\n")
  os.exit(2, true)
end
