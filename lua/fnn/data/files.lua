-- files.lua - datasets from files: CSV, npy, IDX, folders of images; and the
-- embedded digits.
local fnn, load, internals = ...
local data, io = fnn.data, fnn.io
local options = load "data/options"
-- What C lends to this file and scripts do not see.
local digits_bytes = data.digits_bytes
data.digits_bytes = nil
local ImageFolder = data.image_folder
internals.JsonlStream = data.jsonl  -- for sources.lua
data.image_folder, data.jsonl = nil, nil

local math_type, pairs, tostring = math.type, pairs, tostring
local raise, check = options.raise, options.check

local csv_options = { separator = ",", header = false, label = false,
                      dtype = "f32" }
local csv_types = { header = "boolean", label = "number" }

-- What read_csv is given: options without those that were left out.
local function csv(what, given)
  local o = check(what, given, csv_options, csv_types)
  for k, v in pairs(o) do
    if not (given and given[k] ~= nil) then v = nil end
    o[k] = v
  end
  return o
end

-- data.from_csv(path, targets, options): the last targets columns are the
-- targets, the others the inputs.  Returns the dataset and the column names.
function data.from_csv(path, targets, opts)
  local o = csv("from_csv", opts)
  if o.label then
    raise "from_csv: a column of names is read by from_csv_labeled"
  end
  local x, names = io.read_csv(path, o)
  local columns = x:size(2)
  if math_type(targets) ~= "integer" or targets < 1 or targets >= columns then
    raise("from_csv: %s target columns of the %d in %s", tostring(targets),
          columns, path)
  end
  return data.TensorDataset(x:narrow(2, 1, columns - targets),
                            x:narrow(2, columns - targets + 1, targets)), names
end

-- data.from_csv_labeled(path, options): inputs and class ids of the last
-- column (or option label).  Returns the dataset, the class names (in sorted
-- order, id 0 first) and the names of the inputs' columns.
function data.from_csv_labeled(path, opts)
  local o = csv("from_csv_labeled", opts)
  o.label = o.label or -1
  local x, columns, labels, classes = io.read_csv(path, o)
  return data.TensorDataset(x, labels), classes, columns
end

-- data.from_npy(x, y): two .npy files.
function data.from_npy(x, y)
  local inputs, targets = io.read_npy(x), io.read_npy(y)
  if inputs:ndim() == 0 or targets:ndim() == 0 or #inputs ~= #targets then
    raise("from_npy: %s has %d rows, %s has %d", x,
          inputs:ndim() > 0 and #inputs or 0, y,
          targets:ndim() > 0 and #targets or 0)
  end
  return data.TensorDataset(inputs, targets)
end

-- data.from_idx(images, labels, { flatten = }): u8 images (n, h, w), read as
-- f32 0 .. 1 of shape (1, h, w), or (h * w), and their class ids.
function data.from_idx(images, labels, opts)
  local o = check("from_idx", opts, { flatten = false })
  local x, y = io.read_idx(images), io.read_idx(labels)
  if x:ndim() ~= 3 or x:dtype() ~= "u8" then
    raise("%s: expected images: bytes (n, h, w), got %s of %d dimensions",
          images, x:dtype(), x:ndim())
  end
  if y:ndim() ~= 1 or y:dtype() ~= "u8" then
    raise("%s: expected labels: bytes (n), got %s of %d dimensions", labels,
          y:dtype(), y:ndim())
  end
  if #y ~= #x then
    raise("%s has %d images, %s has %d labels", images, #x, labels, #y)
  end
  x = o.flatten and x:reshape(#x, x:size(2) * x:size(3)) or x:unsqueeze(2)
  return data.TensorDataset({ x, dtype = "f32", scale = 1 / 255 },
                            y:to "i64")
end

local folder_options = { size = false, gray = false, one_hot = false }
local folder_types = { size = "table" }

-- data.ImageFolder(path, { size = { h, w }, gray =, one_hot = }): a class a
-- folder, whose names are in the dataset's classes.
function data.ImageFolder(path, opts)
  local o = check("ImageFolder", opts, folder_options, folder_types)
  options.check_path("ImageFolder", path)
  local size = o.size or {}
  if o.size and (#size ~= 2 or math_type(size[1]) ~= "integer"
                 or math_type(size[2]) ~= "integer"
                 or size[1] < 1 or size[2] < 1) then
    raise("ImageFolder: option 'size': expected { height, width }, each 1 "
          .. "to 2^20")
  end
  return ImageFolder(path, { h = size[1], w = size[2], gray = o.gray,
                              one_hot = o.one_hot })
end

-- data.digits(): the 1797 handwritten digits of the UCI Machine Learning
-- Repository's "Optical Recognition of Handwritten Digits" (8 by 8, inputs
-- 0 .. 1 of shape (1, 8, 8), labels 0 .. 9), which are in the library.
function data.digits()
  local x, y = digits_bytes()
  return data.TensorDataset(
    { x:unsqueeze(2), dtype = "f32", scale = 1 / 16 }, y)
end
