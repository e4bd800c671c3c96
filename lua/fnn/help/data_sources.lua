-- data_sources.lua - help on images in folders and on sources of batches.
return [[
# Folders of images

data.ImageFolder(path: string, options?: table) -> Dataset
  The images in a folder that has a folder for each class, as torchvision's: all
  PNG and JPEG files in it and in folders below it. Items are (3, h, w) from 0
  to 1, and class ids in the sorted order of the folders' names, which
  dataset.classes has, id 0 first, and parts of the dataset have too. A file is
  read and decoded when its item is: labels, splits and subsets decode nothing.
  Names that begin with a dot, files that are no images and links to folders
  (below a class) are left out; a class without an image is an error, and so is
  an image of a kind that is not read (.gif, .webp, .bmp, .tif, .ppm).
  size: integer[]            { height, width } to resize to, bilinear with
                             antialias; left out, all must be as the first is
  gray: boolean = false      one channel, luma, instead of three
  one_hot: boolean = false   rows of 0 and 1 instead of ids

Dataset:labels(field?: integer) -> Tensor
  One field (2) of all items, without reading the others.

Dataset:flip_horizontal(width?: integer) -> Dataset
  The items, then all of them again mirrored, with their labels: the last dim of
  the first field runs backwards. In items of one dim, each run of width does:
  rows of pixels, channel after channel.

# Sources of batches

What a training loop and fnn.fit read from: a DataLoader, a JsonlStream, or a
data.source of your own. Each has next(), start(epoch, batch), cursor(), skip(n)
and epoch(n), as Loader and Source below; # is how many batches an epoch has, or
nil where that is not known yet. What an epoch gives is a function of its number
and the source's seed alone, so a cursor is all that must be kept to go on with
the same bits.

data.source(functions: table) -> Source
  A source of your own, from a table with
      start(self, epoch)    goes to the beginning of an epoch
      next(self)            the next batch, a tensor a field; nil at the end
      skip(self, n)         if there: leaves out up to n batches and returns how
                            many; without it they are read and thrown away
      count                 if there: batches in an epoch
      match                 if there: values by name that a state_dict has too,
                            and that must be the same when it is loaded
  The cursor, iteration and state are added. Where next raises, the cursor
  stays, and the next call starts there again.

data.JsonlStream(path: string, options: table) -> Source
  Batches of a file of JSON objects, one a line, plain or in gzip, read as they
  are asked for: memory holds one batch, and the lines that shuffle draws from.
  A field of an object is a number, or an array of numbers of the same shape in
  every line. A line that does not fit is an error with its number.
  input: string|table           the field's name, or { name, dtype = "f32",
                                shape = }: of this shape, from a flat array
  target: string|table          the same; left out, batches are inputs alone
  batch: integer = 1            items a batch, also batch_size
  shuffle: integer = 0          how many lines each item is drawn from
  seed: integer = 0             of the draws
  drop_last: boolean = false    leaves out a last batch that is not full
  device: string                where batches go; the default if left out
  reuse: boolean = false        next fills the tensors it gave before: for a
                                loop that keeps none of them

Source:next() -> Tensor, Tensor
  The next batch, or nothing at the end of the epoch.

Source:start(epoch: integer, batch?: integer) -> Source
  Goes to a batch of an epoch; both count what has been done, so from 0.

Source:cursor() -> integer, integer
  The epoch, and how many of its batches have been given.

Source:skip(n: integer) -> integer
  Leaves out n batches, or those that are left; returns how many.

Source:epoch(n?: integer) -> function
  Iterates over the batches of epoch n; without n over what is left of the
  present one, or over the next. `for x, y in source do` does so too, and moves
  on to the next epoch at the end.

Source:state_dict() -> table
  Its place: { epoch =, batch = } and what must match; an entry of
  fnn.save_training.

Source:load_state_dict(state: table) -> Source
  Goes to that place. A source of another seed, shuffle or batch is an error.

Source:check_state_dict(state: table)
  Raises for a state of another seed, shuffle or batch, and changes nothing.

Loader:skip(n: integer) -> integer
  Leaves out n batches, or those that are left; returns how many.

Dataset:stream(options?: table) -> Loader
  Its batches as a source, the same as data.DataLoader(dataset, options).
]]
