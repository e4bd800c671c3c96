-- plot.lua - help on plots.
return [[
# Plots

A maker takes one table, data by position and options by name, and gives a plot
to save as a PNG or to print in the terminal. Numbers are lists or tensors;
those that are not finite are gaps. A color is 0xRRGGBB, "#rrggbb", or blue,
vermilion, green, purple, orange, sky, black, yellow, wine, sand, indigo, grey,
red, white.

plot.lines(series: table) -> Plot
  Lines through numbers: plot.lines { train, { y = val, label = "val" } }. A
  series is a list, a tensor (n), or { x =, y =, label =, color =, width =,
  dash =, shape =, size =, alpha = }; x counts from 1 without. With line = false
  it is points alone.
  title: string       above
  xlabel: string      below the x axis
  ylabel: string      beside the y axis
  xscale: string = "linear"    or "log", where numbers up to 0 are gaps
  yscale: string = "linear"    or "log"
  xlim: table         { low, high } that the axis shows
  ylim: table         { low, high }
  width: integer = 800     pixels
  height: integer = 500    pixels

plot.scatter(series: table) -> Plot
  Points: a series is { x =, y =, label =, color =, size =, shape =, alpha = }
  or a tensor (n, 2); with line = true it is a line as of lines. Options as of
  lines, and
  background: table    { matrix, extent = { x0, x1, y0, y1 }, colors = } drawn
                       behind, row 1 at y0: numbers, or ids of the series
  shape, of a series: circle, square, triangle, diamond, cross or plus.

plot.histogram(values: table) -> Plot
  How many of the numbers of each series lie in each of equal bins. Options as
  of lines, and
  bins: integer       how many; without, about 2 n^(1/3) with round ends
  labels: string[]    a name for each series
  density: boolean    as shares, of an area of 1

plot.images(images: table) -> Plot
  Images (n, height, width) or (n, channels, height, width), floats from 0 to 1
  or bytes, side by side with texts under them: plot.images { x, labels = ids }.
  labels: table|Tensor    a text or number for each
  wrong: table        true, or what it should be, for those to mark in red
  columns: integer    how many in a row
  scale: integer      how many times larger than they are
  title: string       above
  width: integer      pixels; images are made smaller to fit
  height: integer     pixels

plot.confusion(counts: table) -> Plot
  A matrix of counts (true class, predicted class), as metrics.confusion makes;
  colors are shares of the row.
  classes: string[]   names of the classes; without, their ids
  title: string       above
  xlabel: string = "predicted"    below
  ylabel: string = "true"         beside
  colors: string = "blues"        as of heatmap
  width: integer      pixels
  height: integer     pixels

plot.heatmap(matrix: table) -> Plot
  A matrix (rows, columns) as colors: weights, attention. Row 1 is at the top;
  with extent at y0, the bottom.
  xlabels: string[]   names of the columns
  ylabels: string[]   names of the rows
  extent: table       { x0, x1, y0, y1 } that it covers, for axes of numbers
  colors: string = "viridis"    "diverging" around 0, "blues" or "grey"
  range: table        { low, high } that the ends of the colors stand for
  values: boolean     whether numbers are written into the cells
  title: string       above
  xlabel: string      below
  ylabel: string      beside
  width: integer      pixels
  height: integer     pixels

plot.grid(plots: table) -> Plot
  Several plots in one picture: plot.grid { a, b, c, columns = 2 }.
  columns: integer    how many in a row
  title: string       above all
  width: integer      pixels of all
  height: integer     pixels of all

Plot:save(path: string, options?: table)
  Writes a PNG, drawn by cairo where it is installed.
  plain: boolean = false    drawn without cairo

Plot:print(file?: userdata, options?: table)
  Prints it, to the terminal or to what has a method write: braille dots, blocks
  in colors or shades, a table; in kitty, Ghostty, iTerm2 and WezTerm the
  picture itself. Colors only on a terminal, and not where NO_COLOR is set.
  width: integer      columns; without, the terminal's, or 80
  height: integer     lines, of lines and points 20
  color: boolean|string = "auto"      true, false, "256" or "true" (24 bits)
  picture: boolean|string = "auto"    false, "kitty" or "iterm"

Plot:image(options?: table) -> Tensor
  The picture, u8 (height, width, 3).
  plain: boolean = false    drawn without cairo
]]
