/* How a call is cut among the channels of a job: the same way on all ranks. */
#ifndef GW_LIB_SLICES_H
#define GW_LIB_SLICES_H

#include "core/calls/communicator.h"

enum { GW_SLICE_MIN = 512 << 10 }; /* bytes: what is less gains nothing by another thread */

/* Into how many slices, at most `most`: 1 of what is no collective of tensors; where a part may be
 * missing, or other calls than all-reduces have terms of parts, or fragments are important by their
 * worth; and where what each rank has, of the smaller memory, is little. */
uint32_t gw_slices_of(const struct gw_call *call, uint32_t most);

/* One of them, from 0 on. All begin with a fragment of so many values, and the last has the rest.
 */
struct gw_call gw_slice(const struct gw_call *call, uint16_t values, uint32_t slices,
                        uint32_t number);

#endif
