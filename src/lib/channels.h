/*
 * The I/O threads of an open job, each of which is a channel: sockets and sessions of its own, and
 * to servers, switches and the other ranks a job of its own. A large collective is cut into slices
 * (slices.h), one for each channel, and has ended when all of them have; everything else is the
 * first channel's. What ends one of them ends all.
 */
#ifndef GW_LIB_CHANNELS_H
#define GW_LIB_CHANNELS_H

#include "lib/io.h"

struct gw_channels;

/* Opens as many as the plan says, and waits until all ranks have. Returns GRADWIRE_OK, or an error
 * with `error` (GW_IO_TEXT_MAX long) filled. */
int gw_channels_open(const struct gw_io_plan *plan, struct gw_channels **channels, char *error);

/* Leaves the job, waits until that is done, and frees everything. */
void gw_channels_close(struct gw_channels *channels);

/* Whether a call is cut. */
bool gw_channels_cut(const struct gw_channels *channels, const struct gw_call *call);

/* As gw_io_send(), which see; not after a failure. */
bool gw_channels_send(struct gw_channels *channels, const struct gw_call *call, bool waits);

/* The next completion; waits until there is one if a call that is in work is awaited, else 0.
 * False: none came. */
bool gw_channels_receive(struct gw_channels *channels, struct gw_completion *completion,
                         uint64_t awaited);

/* Whether one has failed, as far as completions have said so; then all have. */
bool gw_channels_have_failed(const struct gw_channels *channels);

/* The first, whose descriptor is that of all. */
struct gw_io *gw_channels_first(const struct gw_channels *channels);

/* What the failure was that a completion reported. */
const char *gw_channels_text(const struct gw_channels *channels);

/* Why this call alone, which has ended, was refused; NULL: it was not. */
const char *gw_channels_refusal(const struct gw_channels *channels, uint64_t call);

/* The sums of their counters. */
void gw_channels_stats(const struct gw_channels *channels, struct gradwire_stats *stats);

#endif
