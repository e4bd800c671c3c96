-- completion.lua - what a shell needs to complete a script's command line:
-- the texts of --completion bash, zsh and fish.
--
-- They complete a script that is run by its own name.  In bash and zsh, what
-- `fnn completion` prints looks for the function that is defined here when
-- the script follows `fnn`; fish tells by the words that are there.

local ipairs, tostring = ipairs, tostring
local find, format, gsub = string.find, string.format, string.gsub
local concat = table.concat

local completion = {}

-- A text between single quotes of a shell.
local function quoted (text)
  return "'" .. gsub(text, "'", [['\'']]) .. "'"
end

local function words_of (o)
  if o.type ~= "choice" then return nil end
  local names = {}
  for i, v in ipairs(o.choices) do names[i] = tostring(v) end
  return concat(names, " ")
end

local function takes_file (o)
  return o.type == "string" and
         (o.value == nil or find(o.value, "FILE") or find(o.value, "FOLDER"))
end

local function script_of (c) return c.script or "script" end

local function function_of (c)
  return "_fnn_script_" .. gsub(script_of(c), "[^%w]", "_")
end

-- {======================================================
-- bash
-- =======================================================

-- The cases of options that have a value, by the word before the cursor.
local function bash_cases (c)
  local lines = {}
  for _, o in ipairs(c.spec.all) do
    local names = "--" .. o.shown .. (o.short and "|-" .. o.short or "")
    local words = words_of(o)
    local reply = words and "-W " .. quoted(words) or takes_file(o) and "-f"
    if o.type ~= "flag" then
      lines[#lines + 1] = format("    %s) COMPREPLY=(%s); return ;;", names,
        reply and format('$(compgen %s -- "$cur")', reply) or "")
    end
  end
  return concat(lines, "\n")
end

local function all_options (c)
  local names = {}
  for _, o in ipairs(c.spec.all) do
    names[#names + 1] = (o.type == "flag" and o.default and "--no-" or "--") ..
                        o.shown
  end
  return concat(names, " ")
end

function completion.bash (c)
  return format([[
# bash completion of %s
%s () {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  [ "$cur" = = ] && cur=
  [ "$prev" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}
  case $prev in
%s
  esac
  case $cur in
    -*) COMPREPLY=($(compgen -W %s -- "$cur")) ;;
    *) COMPREPLY=($(compgen %s -- "$cur")) ;;
  esac
}
complete -o filenames -F %s %s]], script_of(c), function_of(c), bash_cases(c),
    quoted(all_options(c)),
    c.spec.words.most > 0 and "-f" or "-W " .. quoted(all_options(c)),
    function_of(c), quoted(script_of(c)))
end

-- }======================================================

-- {======================================================
-- zsh
-- =======================================================

-- What is said of an option, in the brackets of _arguments.
local function described (text)
  return gsub(gsub(text, "%s+", " "), "[%[%]\\:]", "\\%0")
end

local function zsh_option (o)
  local text = described(o.text)
  if o.type == "flag" then
    return quoted(format("--%s%s[%s]", o.default and "no-" or "", o.shown,
                         text))
  end
  local words = words_of(o)
  local action = words and "(" .. words .. ")" or
                 takes_file(o) and "_files" or " "
  return quoted(format("--%s=[%s]:%s:%s", o.shown, text, o.shown, action))
end

function completion.zsh (c)
  local lines = {}
  for i, o in ipairs(c.spec.all) do
    lines[i] = "    " .. zsh_option(o)
  end
  if c.spec.words.most > 0 then
    lines[#lines + 1] = "    " .. quoted "*:file:_files"
  end
  return format([[
#compdef %s
%s () {
  _arguments \
%s
}
compdef %s %s]], script_of(c), function_of(c), concat(lines, " \\\n"),
    function_of(c), quoted(script_of(c)))
end

-- }======================================================

-- {======================================================
-- fish
-- =======================================================

local function fish_quoted (text)
  return "'" .. gsub(gsub(text, "%s+", " "), "[\\']", "\\%0") .. "'"
end

local function fish_option (o)
  local parts = {}
  local name = (o.type == "flag" and o.default and "no-" or "") .. o.shown
  parts[1] = "-l " .. name
  if o.short then parts[#parts + 1] = "-s " .. o.short end
  local words = words_of(o)
  if words then
    parts[#parts + 1] = "-x -a " .. fish_quoted(words)
  elseif o.type ~= "flag" then
    parts[#parts + 1] = takes_file(o) and "-r -F" or "-x"
  end
  parts[#parts + 1] = "-d " .. fish_quoted(o.text)
  return concat(parts, " ")
end

function completion.fish (c)
  local name = fish_quoted(script_of(c))
  local lines = { "# fish completion of " .. script_of(c) }
  local seen = { script_of(c) }
  if c.path and c.path ~= c.script then seen[2] = c.path end
  local behind = format("complete -c fnn -n %s",
    fish_quoted("__fish_seen_subcommand_from " .. concat(seen, " ")))
  if c.spec.words.most == 0 then
    lines[2] = "complete -c " .. name .. " -f"
    lines[3] = behind .. " -f"
  end
  for _, o in ipairs(c.spec.all) do
    local option = fish_option(o)
    lines[#lines + 1] = "complete -c " .. name .. " " .. option
    lines[#lines + 1] = behind .. " " .. option
  end
  return concat(lines, "\n")
end

-- }======================================================

return completion
