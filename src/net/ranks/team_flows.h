/*
 * Flows of a team: what its calls, and the store, do with other ranks. Each message is a
 * flow of its own, under a tag.
 */
#ifndef GW_NET_TEAM_FLOWS_H
#define GW_NET_TEAM_FLOWS_H

#include "net/ranks/team.h"

enum {
    /*
     * Tags. Below 2^31: of all-reduces, a number of the call, then one of the segment. Above: of
     * messages; of the store, which adds a number of 24 bits, too. At the top: our own.
     */
    GW_TEAM_SEGMENT_BITS = 22,
    GW_TEAM_CALL_MASK = (1 << (31 - GW_TEAM_SEGMENT_BITS)) - 1,
};

#define GW_TEAM_TAG_MESSAGE UINT32_C(0x80000000)
#define GW_TEAM_TAG_STORE   UINT32_C(0x90000000)
#define GW_TEAM_TAG_TABLE   UINT32_C(0xffffff00)
#define GW_TEAM_TAG_FAILURE UINT32_C(0xffffff01)

/* Whether there is a way to the rank. */
bool gw_team_is_up(const struct gw_team *comm, uint32_t rank);

/* Wants a way to the rank. */
void gw_team_connect(struct gw_team *comm, uint32_t rank, gw_time now);

/* Starts a flow to a rank that is up. Returns 0 or GW_ERR_NO_ROOM. */
int gw_team_send(struct gw_team *comm, uint32_t rank, uint32_t tag, const void *data,
                 uint64_t bytes, uint32_t *flow, gw_time now);

/* Posts memory for a message of a rank whose address is known. Returns as gw_endpoint_expect(). */
int gw_team_expect(struct gw_team *comm, uint32_t rank, uint32_t tag, void *data, uint64_t bytes);

/* Drops the flows that read or write this memory: it is the caller's again. */
void gw_team_forget(struct gw_team *comm, const void *data, uint64_t bytes);

/* Posts an event for the application. */
void gw_team_post(struct gw_team *comm, const struct gw_team_event *event);

/* Ends the job for this rank, and tells the others. The first failure counts. */
void gw_team_fail(struct gw_team *comm, enum gw_job_reason reason, uint32_t about, gw_time now);

/* Ends the job because of what that rank did; `text` says what. */
void gw_team_blame(struct gw_team *comm, uint32_t rank, const char *text, gw_time now);

#endif
