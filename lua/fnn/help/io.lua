-- io.lua - help on files.
return [[
# Files

A bad file is an error that names the file and what is wrong with it. A write
leaves the old file or the whole new one.

io.open_safetensors(path: string) -> Safetensors
  A safetensors file, whose tensors are read one at a time.

io.save_safetensors(path: string, tensors: table[], metadata?: table)
  Writes { { name, tensor }, ... } in this order, and strings by name.

io.read_npy(path: string) -> Tensor
  A numpy array.

io.write_npy(path: string, x: Tensor)
  Writes a numpy array.

io.read_idx(path: string) -> Tensor
  An IDX file, plain or .gz.

io.read_csv(path: string, options?: table)
    -> Tensor, string[], Tensor, string[]
  A table of numbers (rows, columns), plain or .gz, and the names of its
  columns; with label also its class ids and the names of the classes.
  separator: string = ","    between fields
  header: boolean            whether the first row has names; else it is guessed
  label: integer             the column of class names; -1 is the last
  dtype: string = "f32"      or "f64"

io.read_png(path: string, options?: table) -> Tensor, table
  An image, u8 (height, width, channels), and its texts by name.
  channels: integer = 0    1 grey, 2 with alpha, 3 RGB, 4 RGBA; 0 as it is

io.read_image(path: string, options?: table) -> Tensor
  An image in PNG or JPEG, u8 (height, width, channels). A JPEG image is turned
  upright, as its Exif data say, and CMYK becomes RGB; a file that ends early or
  is damaged is an error.
  channels: integer = 0    1 grey, 2 with alpha, 3 RGB, 4 RGBA; 0 as it is

io.has_jpeg() -> boolean
  Whether this build reads JPEG, by libjpeg.

io.write_png(path: string, image: Tensor, texts?: table)
  Writes u8 (height, width) or (height, width, channels).

io.encode_png(image: Tensor, texts?: table) -> string
  The bytes of the file that write_png would write.

io.read_text(path: string) -> string
  A whole file.

io.write_text(path: string, text: string)
  Writes a whole file.

io.make_folder(path: string)
  Makes a folder, and those it is in; one that is there is left as it is.

io.is_file(path: string) -> boolean
  Whether there is a file that may be read.

io.download(url: string, path: string, options?: table)
  Fetches a file by http or https, by libcurl where it is installed. The folders
  are made. With size and crc32, those of the content (unzipped if it is in
  gzip) must be these; else nothing is kept.
  size: integer     bytes
  crc32: integer    checksum

io.draw_text(image: Tensor, x: integer, y: integer, text: string,
             color?: integer, scale?: integer)
  Writes into an RGB image; x and y are places. color is 0xRRGGBB, white
  without.

io.draw_rect(image: Tensor, x: integer, y: integer, width: integer,
             height: integer, color?: integer, line?: integer)
  Draws a rectangle into an RGB image, filled when line is 0 or missing.

Safetensors:names() -> string[]
  The names of the tensors.

Safetensors:has(name: string) -> boolean
  Whether there is one of that name.

Safetensors:shape(name: string) -> integer[]
  Its sizes.

Safetensors:dtype(name: string) -> string
  Its dtype as the file has it: "F16".

Safetensors:read(name: string) -> Tensor
  The tensor.

Safetensors:metadata() -> table
  Strings by name.
]]
