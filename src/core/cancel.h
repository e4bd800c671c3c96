/* cancel.h - what the engine does with the token by which a host stops work; a
** part of core.h. */

#ifndef core_cancel_h
#define core_cancel_h

fnn_Cancel *cancel_retain (fnn_Cancel *t); /* fnn_cancel_free gives it back */
bool cancel_is_set (const fnn_Cancel *t);

/* Of an armed token the next fnn_cancel asks whoever armed it, and does not
** set it; the one after that does.  take forgets that it was asked, and tells
** whether it was. */
void cancel_arm (fnn_Cancel *t, bool on) LENT(cancel_arm);
bool cancel_is_asked (const fnn_Cancel *t) LENT(cancel_is_asked);
bool cancel_take (fnn_Cancel *t) LENT(cancel_take);

/* Clears the current context's token and throws FNN_ECANCEL. */
FNN_NORETURN void cancel_throw (void);

#endif
