-- mnist.lua - MNIST and Fashion-MNIST: found on this machine, or fetched.
--
-- Y. LeCun, C. Cortes, C. Burges: the MNIST database of handwritten digits.
-- H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST, 2017, arXiv:1708.07747.
local fnn, load, internals = ...
local data, io = fnn.data, fnn.io
local options = load "data/options"

local ipairs, tostring, type = ipairs, tostring, type
local concat = table.concat
local find, gsub, match, sub = string.find, string.gsub, string.match,
                               string.sub
local getenv, raise, check = internals.getenv, options.raise, options.check

-- For each file the size and CRC-32 of its content, unzipped.
local sets = {
  {
    name = "mnist", title = "MNIST",
    mirrors = { "https://storage.googleapis.com/cvdf-datasets/mnist",
                "https://ossci-datasets.s3.amazonaws.com/mnist" },
    train = { images = { "train-images", 47040016, 0xe9f4d8b3 },
              labels = { "train-labels", 60008, 0xe0cb4ad2 } },
    test = { images = { "t10k-images", 7840016, 0x91373bdf },
             labels = { "t10k-labels", 10008, 0x4ab9eff9 } },
  },
  {
    name = "fashion-mnist", title = "Fashion-MNIST",
    package = "dataset-fashion-mnist",
    mirrors = {
      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
      "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist"
        .. "/master/data/fashion",
    },
    classes = { "t-shirt", "trouser", "pullover", "dress", "coat", "sandal",
                "shirt", "sneaker", "bag", "boot" },
    train = { images = { "train-images", 47040016, 0xb4f29f28 },
              labels = { "train-labels", 60008, 0x741a4657 } },
    test = { images = { "t10k-images", 7840016, 0x678fe0b1 },
             labels = { "t10k-labels", 10008, 0x80142c1f } },
  },
}

local endings = { images = "idx3-ubyte", labels = "idx1-ubyte" }

local function file_name(file, kind)
  return file[1] .. "-" .. endings[kind] .. ".gz"
end

-- The path of a file in a folder, under one of the names it goes by.
local function find_file(folder, file, kind)
  for _, between in ipairs { "-", "." } do
    for _, last in ipairs { ".gz", "" } do
      local path = folder .. "/" .. file[1] .. between .. endings[kind] .. last
      if io.is_file(path) then return path end
    end
  end
end

local function find_pair(folder, part)
  local images = find_file(folder, part.images, "images")
  local labels = find_file(folder, part.labels, "labels")
  if images and labels then return images, labels end
end

local function cache_folder(name)
  local cache = getenv "XDG_CACHE_HOME"
  if not cache or sub(cache, 1, 1) ~= "/" then
    local home = getenv "HOME"
    cache = home and home ~= "" and home .. "/.cache"
  end
  return cache and cache .. "/fnn/" .. name
end

-- Folders to look in, and the one that a download goes to (or nil).
local function places(set, root)
  if root then return { root, root .. "/" .. set.name }, root end
  local list, own = {}, cache_folder(set.name)
  local function add(folder)
    if folder then list[#list + 1] = folder end
  end
  local mine = getenv "FNN_DATA"
  if mine and mine ~= "" then
    add(mine .. "/" .. set.name)
    add(mine)
  end
  add("/usr/share/datasets/" .. set.name)
  add("/usr/local/share/datasets/" .. set.name)
  add(own)
  return list, own
end

-- Fetches one file into folder: its path, or nil and why each mirror failed.
local function fetch_file(mirrors, folder, file, kind)
  local name, why = file_name(file, kind), {}
  for _, mirror in ipairs(mirrors) do
    local path = folder .. "/" .. name
    local url = mirror .. "/" .. name
    local _, message = io.try_download(url, path,
                                       { size = file[2], crc32 = file[3] })
    if io.is_file(path) then return path end
    message = tostring(message)
    why[#why + 1] = "  " .. sub(message, find(message, url, 1, true) or 1)
  end
  return nil, concat(why, "\n")
end

-- Why there is no download, or nil when there may be one.
local function offline(o, folder)
  local v = getenv "FNN_OFFLINE"
  if not o.download then return "option download is false" end
  if v and v ~= "" and v ~= "0" then return "FNN_OFFLINE is set" end
  if not folder then return "there is no home folder to keep it in" end
end

-- One message that says what to put where.
local function missing(set, part, folder, why)
  local files = file_name(part.images, "images") .. " and "
                .. file_name(part.labels, "labels")
  local text = ("%s is not on this machine and was not downloaded:\n%s\n"
    .. "Put %s (plain or .gz)\ninto %s, or into a folder that the option "
    .. "root or FNN_DATA names."):format(set.title, why, files,
    folder or "a folder")
  if set.package then
    text = text .. "\nDebian and Ubuntu have them: apt-get install "
           .. set.package
  end
  raise("%s", text)
end

local function fetch(set, part, folder, o)
  local why = offline(o, folder)
  if why then missing(set, part, folder, "  " .. why) end
  local mirrors = o.mirror or set.mirrors
  if type(mirrors) == "string" then mirrors = { mirrors } end
  local paths = {}
  for _, kind in ipairs { "labels", "images" } do
    local path, reason = find_file(folder, part[kind], kind), nil
    if not path then
      path, reason = fetch_file(mirrors, folder, part[kind], kind)
    end
    if not path then missing(set, part, folder, reason) end
    paths[kind] = path
  end
  return paths.images, paths.labels
end

local defaults = { root = false, download = true, mirror = false }
local types = { root = "string", mirror = "any" }

local function open(set, function_name, which, opts)
  local o = check(function_name, opts, defaults, types)
  local part = (which == "train" or which == "test") and set[which]
  if not part then
    raise("%s: expected 'train' or 'test', got %s", function_name,
          tostring(which))
  end
  local folders, own = places(set, o.root and match(o.root, "^(.-)/*$"))
  for _, folder in ipairs(folders) do
    local images, labels = find_pair(folder, part)
    if images then return data.from_idx(images, labels) end
  end
  return data.from_idx(fetch(set, part, own, o))
end

-- data.mnist(which, { root =, download =, mirror = }): 60,000 digits for
-- training or 10,000 for testing, and the names of the classes;
-- data.fashion_mnist the same of clothes.
for _, set in ipairs(sets) do
  local name = gsub(set.name, "-", "_")
  data[name] = function (which, opts)
    local ds = open(set, name, which, opts)
    local classes = {}
    for i = 0, 9 do
      classes[i + 1] = set.classes and set.classes[i + 1] or tostring(i)
    end
    return ds, classes
  end
end
