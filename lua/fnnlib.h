/* fnnlib.h - the Lua side of fnn for hosts.
**
** luaopen_fnn is what `require "fnn"` calls.  A host with its own allocator,
** log, limits or cancel token opens the library itself:
**
**   fnn_Host host = FNN_HOST_INIT;
**   host.memory_limit = 1 << 30;
**   fnn_openlibs(L, &host);
**   lua_pop(L, 1);
*/

#ifndef fnnlib_h
#define fnnlib_h

#include <lua.h>

#include "fnn.h"

#ifdef __cplusplus
extern "C" {
#endif

FNN_API int luaopen_fnn (lua_State *L);

/* Opens the library in L (host NULL: the defaults), makes require "fnn" find
** it, sets no global, and pushes its table. */
FNN_API void fnn_openlibs (lua_State *L, const fnn_Host *host);

/* The context of L, for fnn_cancel_token and fnn_use; NULL before it is
** opened. */
FNN_API fnn_Context *fnn_tocontext (lua_State *L);

/* The tensor (or a Param's value) at index i, borrowed; NULL if it is none. */
FNN_API fnn_Tensor *fnn_totensor (lua_State *L, int i);

/* Pushes a box of x, with a reference of its own. */
FNN_API void fnn_pushtensor (lua_State *L, fnn_Tensor *x);

#ifdef __cplusplus
}
#endif

#endif
