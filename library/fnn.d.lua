---@meta fnn
-- Written by scripts/reference from lua/fnn/help/; change it there.

---@class fnn
local fnn = {}

---A shared slot for one weight, with its gradient and the optimizer's state.
---Every operation takes a Param where it takes a tensor.
---@param x fnn.Tensor
---@return fnn.Param
function fnn.Param (x) end

---@class fnn.Param
---@operator add(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator sub(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mul(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator div(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mod(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator pow(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator idiv(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator unm: fnn.Tensor
---@operator len: integer
local Param = {}

---Drops the gradient.
function Param:zero_grad () end

return fnn
