/* queues.h - what a device can do whose memory is not the process's, beside
** computing; a part of core.h.
**
** Its work is done in the order of the calls, on a queue of its own; copies
** from pinned memory have a second queue, beside the first.  An event marks a
** place in the work of a queue. */

#ifndef core_queues_h
#define core_queues_h

#include "../fnn.h"

typedef struct Event Event;
typedef struct Recording Recording;

typedef struct Queues {
  void (*describe)(const fnn_Device *d, fnn_DeviceInfo *info);
  void (*synchronize)(const fnn_Device *d); /* all work is done */
  /* Memory of the host that the device reads by itself.  NULL: none left. */
  void *(*pin)(const fnn_Device *d, size_t bytes);
  void (*unpin)(const fnn_Device *d, void *p);
  Event *(*event)(const fnn_Device *d);
  void (*event_free)(const fnn_Device *d, Event *e);
  /* The second queue: copies come after what is computed so far, which e
  ** marks; and e marks their end. */
  void (*copy_after)(const fnn_Device *d, Event *e);
  void (*copy)(const fnn_Device *d, void *to, const void *pinned, size_t n);
  void (*copy_mark)(const fnn_Device *d, Event *e);
  /* What is computed from now on comes after e. */
  void (*compute_after)(const fnn_Device *d, Event *e);
  /* Whether e has passed; waits for it when wait is set. */
  bool (*passed)(const fnn_Device *d, Event *e, bool wait);
  /* Work that is written down instead of done, then done again and again. */
  void (*record)(const fnn_Device *d);
  Recording *(*recorded)(const fnn_Device *d);
  void (*record_stop)(const fnn_Device *d); /* ends it, whatever its state */
  void (*replay)(const fnn_Device *d, Recording *r);
  void (*recording_free)(const fnn_Device *d, Recording *r);
} Queues;

#endif
