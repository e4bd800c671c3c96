-- vision.lua - the vision transformer (Dosovitskiy et al. 2021): an image as a
-- sequence of patches.
--
-- A patch is the C p p numbers of its pixels in the order (channel, row,
-- column), which one Linear takes; patches follow each other in reading order
-- and are turned by their places.  Blocks attend both ways; the mean over the
-- patches is classified.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"
local positions = load "nn/positions"

local error, ipairs, pairs, pcall = error, ipairs, pairs, pcall
local tostring, type = tostring, type
local format, tointeger = string.format, math.tointeger
local raise, described = module.raise, module.described
local count, shape_text = positions.count, positions.shape_text

local ViT = nn.module "VisionTransformer"

local defaults = {
  image_size = false, patch = false, channels = 3, classes = false,
  dim = false, depth = false, heads = false, ff = false, dropout = 0,
  activation = "gelu", norm_first = true, dtype = false, device = false,
  generator = false,
}

-- Those that a file keeps.
local kept = { "image_size", "patch", "channels", "classes", "dim", "depth",
               "heads", "ff", "dropout", "activation", "norm_first" }

-- {======================================================
-- Making one
-- =======================================================

-- A size, or { height, width }, as the latter.
local function pair (name, v)
  local t = type(v) == "table" and v or { v, v }
  if #t ~= 2 then
    raise("VisionTransformer: option '%s': expected a size or { height, " ..
          "width }, got %s", name, described(v))
  end
  local what = "option '" .. name .. "'"
  return { count("VisionTransformer", what, t[1]),
           count("VisionTransformer", what, t[2]) }
end

function ViT:init (options, ...)
  module.no_more("VisionTransformer", 1, ...)
  local o = module.options("VisionTransformer", options, defaults)
  for _, name in ipairs { "channels", "classes", "dim", "depth", "heads" } do
    count("VisionTransformer", "option '" .. name .. "'", o[name] or nil)
  end
  local size, patch = pair("image_size", o.image_size or nil),
                      pair("patch", o.patch or nil)
  if size[1] % patch[1] ~= 0 or size[2] % patch[2] ~= 0 then
    raise("VisionTransformer: an image of %d x %d is not made of patches of " ..
          "%d x %d", size[1], size[2], patch[1], patch[2])
  end
  o.image_size, o.patch, o.ff = size, patch, o.ff or 4 * o.dim
  self.options = {}
  for _, name in ipairs(kept) do self.options[name] = o[name] end
  local like = positions.only(o, "dtype", "device", "generator")
  self.embed = nn.Linear(o.channels * patch[1] * patch[2], o.dim, like)
  local inner = positions.only(o, "ff", "dropout", "activation", "dtype",
                               "device", "generator")
  inner.norm_first, inner.rotary, inner.final_norm = o.norm_first, true, true
  self.encoder = nn.TransformerEncoder(o.dim, o.heads, o.depth, inner)
  self.head = nn.Linear(o.dim, o.classes, like)
end

function ViT:describe ()
  local o = self.options
  return format("%d x %d, patches of %d x %d", o.image_size[1],
                o.image_size[2], o.patch[1], o.patch[2])
end

nn.VisionTransformer = ViT

-- }======================================================

-- {======================================================
-- Running it
-- =======================================================

-- Images (n, channels, h, w) as patches (n, patches, channels * p * p).
function ViT:patches (x)
  local o = self.options
  local h, w = o.image_size[1], o.image_size[2]
  local p, q = o.patch[1], o.patch[2]
  if not positions.is_tensor(x) then
    raise("VisionTransformer: expected images, got %s", described(x))
  end
  if x:ndim() ~= 4 or x:size(2) ~= o.channels or x:size(3) ~= h or
     x:size(4) ~= w then
    raise("VisionTransformer: expected images (n, %d, %d, %d), got %s",
          o.channels, h, w, shape_text(x))
  end
  local cut = x:reshape(x:size(1), o.channels, h // p, p, w // q, q)
  return cut:permute(1, 3, 5, 2, 4, 6):flatten(4, 6):flatten(2, 3)
end

-- Logits (n, classes) of images.
function ViT:forward (x)
  return self.head(self.encoder(self.embed(self:patches(x))):mean(2))
end

-- fnn.fit with cross_entropy, unless options say otherwise.
function ViT:fit (set, options)
  local o = { loss = nn.cross_entropy }
  for key, v in pairs(options or {}) do o[key] = v end
  return fnn.fit(self, set, o)
end

-- The class of each image, as an id; of a single (channels, h, w), a number.
function ViT:predict (x)
  local single = fnn.is_tensor(x) and x:ndim() == 3
  if single then x = x:unsqueeze(1) end
  local training = self.training
  self:eval()
  local ok, ids = pcall(fnn.no_grad, function ()
    return self(x:to(self.head.weight:device())):argmax(2)
  end)
  self:train(training)
  if not ok then error(ids, 0) end
  return single and ids[1] or ids
end

-- The share of a dataset, a loader or { images, ids } that it gets right.
function ViT:accuracy (set)
  local device = self.head.weight:device()
  return fnn.evaluate(self, set, {
    metrics = { accuracy = fnn.metrics.accuracy },
    device = device ~= "cpu" and device or nil }).accuracy
end

-- }======================================================

-- {======================================================
-- Files
-- =======================================================

local file_format, file_version = "fnn.vision_transformer", 1

-- vit:save_json(path): what it was made with, and its weights.
function ViT:save_json (path)
  local json_file = load "json_file"
  local weights = {}
  for name, p in self:named_parameters() do weights[name] = p:totable() end
  json_file.write(path, { format = file_format, version = file_version,
                          options = self.options, weights = weights })
  return self
end

-- Whether the options of a file are those of this one.
local function same (a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  return a[1] == b[1] and a[2] == b[2]
end

-- vit:load_json(path): the weights in a file of one made with the same
-- options.
function ViT:load_json (path)
  local json_file = load "json_file"
  local fail = json_file.failing(path)
  local t = json_file.read(path, file_format, file_version,
                           "a vision transformer")
  local options = type(t.options) == "table" and t.options or {}
  for _, name in ipairs(kept) do
    if name ~= "dropout" and not same(options[name], self.options[name]) then
      fail("option '%s' is not that of this model", name)
    end
  end
  local weights = type(t.weights) == "table" and t.weights or {}
  local found = {}
  for name, p in self:named_parameters() do
    found[name] = json_file.tensor(fail, name, weights[name], p:shape())
  end
  self:load_state_dict(found)
  return self
end

-- Raises unless there are weights of the sizes that the options tell: before
-- a file has us ask for more memory than it fills.
local function check_sizes (fail, o, weights)
  local function check (name, n)
    local list = weights[name]
    if type(list) ~= "table" or #list ~= n then
      fail("%s: expected %s of them, got %s", name, tostring(n),
           type(list) == "table" and #list or described(list))
    end
  end
  check("embed.weight", o.dim)
  check("head.bias", o.classes)
  for i = 0, (tointeger(o.depth) or 0) - 1 do
    local layer = format("encoder.layers.%d.", i)
    check(layer .. "norm1.weight", o.dim)
    check(layer .. "linear1.bias", o.ff)
  end
end

-- nn.load_vision_transformer(path): a model from such a file.
function nn.load_vision_transformer (path)
  local json_file = load "json_file"
  local fail = json_file.failing(path)
  local t = json_file.read(path, file_format, file_version,
                           "a vision transformer")
  if type(t.options) ~= "table" then
    fail("options: expected an object, got %s", described(t.options))
  end
  check_sizes(fail, t.options, type(t.weights) == "table" and t.weights or {})
  return ViT(t.options):load_json(path)
end

-- }======================================================

return true
