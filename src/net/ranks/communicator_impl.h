/* Inside of the communicator: what its files share. See communicator.h. */
#ifndef GW_NET_COMMUNICATOR_IMPL_H
#define GW_NET_COMMUNICATOR_IMPL_H

#include "core/ranks/coll_run.h"
#include "core/host/endpoint.h"
#include "net/ranks/communicator.h"
#include "net/ranks/rank_table.h"
#include "net/ranks/store.h"

enum {
    GW_COMMUNICATOR_RUNS = 2, /* all-reduces that overlap */
    GW_COMMUNICATOR_DIAL_NONE = -1,

    /*
     * Tags. Below 2^31: of all-reduces, a number of the call, then one of the segment. Above: of
     * messages; of the store, which adds a number of 24 bits, too. At the top: our own.
     */
    GW_COMMUNICATOR_SEGMENT_BITS = 22,
    GW_COMMUNICATOR_CALL_MASK = (1 << (31 - GW_COMMUNICATOR_SEGMENT_BITS)) - 1,
};

#define GW_COMMUNICATOR_TAG_MESSAGE UINT32_C(0x80000000)
#define GW_COMMUNICATOR_TAG_STORE   UINT32_C(0x90000000)
#define GW_COMMUNICATOR_TAG_TABLE   UINT32_C(0xffffff00)
#define GW_COMMUNICATOR_TAG_FAILURE UINT32_C(0xffffff01)

/* What the failing tell each other. */
struct gw_communicator_failure {
    uint32_t reason; /* enum gw_job_reason; big-endian on the wire, as the other */
    uint32_t about;  /* rank */
};

_Static_assert((int)GW_NEIGHBOURS_DIALS_MAX > (int)GW_OVERLAY_WORLD_MAX, "all ranks and a switch");

struct gw_communicator_rank {
    struct gw_rank_table_entry at;          /* its address is 0: not known yet */
    bool is_dialled;                        /* by us */
    bool is_up;                             /* there is a way to it */
    uint16_t peer;                          /* of that way */
    struct gw_communicator_failure failure; /* memory for what it may tell us */
};

enum gw_communicator_state {
    GW_COMMUNICATOR_MEETING,    /* rank 0: all have come; others: the table has. Then: connecting */
    GW_COMMUNICATOR_CONNECTING, /* those whom all-reduces need are up: running */
    GW_COMMUNICATOR_RUNNING,
    GW_COMMUNICATOR_LEAVING, /* all others leave, too: over */
    GW_COMMUNICATOR_OVER,
};

struct gw_communicator_run {
    struct gw_coll_run *run;
    uint64_t call;
    bool is_running;
};

/* A tensor that waits for its turn. */
struct gw_communicator_tensor {
    struct gw_tensor tensor;
    uint64_t call;
};

enum gw_communicator_move_state {
    GW_COMMUNICATOR_MOVE_FREE,
    GW_COMMUNICATOR_MOVE_WAITS, /* a way and room move it on */
    GW_COMMUNICATOR_MOVE_RUNS,  /* the endpoint's event moves it on */
};

struct gw_communicator_move {
    struct gw_communicator_message message;
    gw_time since; /* it runs */
    enum gw_communicator_move_state state;
    uint32_t flow;
};

struct gw_communicator {
    struct gw_communicator_cfg cfg;
    struct gw_endpoint *ep;
    uint16_t node;
    struct gw_communicator_rank *ranks;
    int dials[GW_NEIGHBOURS_DIALS_MAX]; /* rank of each, but of the switch's */
    int switch_dial;                    /* or GW_COMMUNICATOR_DIAL_NONE */
    bool is_switch_up;
    unsigned char *table;
    uint32_t *addresses; /* of all ranks, for the runs */
    enum gw_communicator_state state;
    uint32_t failures_left;
    struct gw_communicator_failure failure; /* as on the wire; told to others */
    char text[GW_COMMUNICATOR_TEXT_MAX];
    gw_time progress_at;
    uint64_t arrivals; /* as of then */

    struct gw_communicator_run runs[GW_COMMUNICATOR_RUNS];
    struct gw_communicator_tensor tensors[GW_COMMUNICATOR_CALLS_MAX]; /* ring */
    uint32_t tensor_head, tensor_count;
    uint32_t reduces; /* begun */
    struct gw_communicator_move moves[GW_COMMUNICATOR_CALLS_MAX];
    int32_t farewell; /* what ranks that leave add up */
    struct gw_store *store;

    struct gw_communicator_event events[4 * GW_COMMUNICATOR_CALLS_MAX]; /* ring */
    uint32_t event_head, event_count;
};

/* communicator.c */
void gw_communicator_post(struct gw_communicator *comm, const struct gw_communicator_event *event);
/* Ends the job for this rank, and tells the others. The first failure counts. */
void gw_communicator_fail(struct gw_communicator *comm, enum gw_job_reason reason, uint32_t about,
                          gw_time now);
/* Wants a way to the rank. */
void gw_communicator_connect(struct gw_communicator *comm, uint32_t rank, gw_time now);
struct gw_path gw_communicator_path(const struct gw_communicator *comm);
/* Starts a flow of ours. Returns 0 or GW_ERR_NO_ROOM. */
int gw_communicator_send(struct gw_communicator *comm, uint32_t rank, uint32_t tag,
                         const void *data, uint64_t bytes, uint32_t *flow, gw_time now);

/* Asks rank 0 for a session. Returns 0, or an error with `error` filled. */
int gw_communicator_dial_rank_0(struct gw_communicator *comm, char *error);

/* communicator_switch.c */
/* Asks the switch for a session. Returns 0, or an error with `error` filled. */
int gw_communicator_dial_switch(struct gw_communicator *comm, char *error);
/* Takes an event of the switch. */
void gw_communicator_switch_event(struct gw_communicator *comm,
                                  const struct gw_neighbour_event *event, gw_time now);
/* Whether there is a switch to go by, and it is silent. */
bool gw_communicator_is_cut_off(const struct gw_communicator *comm);
/* From now on packets go straight to those whom we have sessions with. */
void gw_communicator_go_direct(struct gw_communicator *comm);

/* communicator_calls.c */
int gw_communicator_open_runs(struct gw_communicator *comm);
void gw_communicator_close_runs(struct gw_communicator *comm);
/* Takes an event of the endpoint that is about a call. */
void gw_communicator_calls_event(struct gw_communicator *comm, const struct gw_event *event,
                                 gw_time now);
/* Starts what waits, ends what has run. */
void gw_communicator_advance(struct gw_communicator *comm, gw_time now);
bool gw_communicator_has_calls(const struct gw_communicator *comm);
/* The rank of a message to us that has not begun although its call has stalled; `world`: none. */
uint32_t gw_communicator_overdue(const struct gw_communicator *comm, gw_time now);
/* Memory of calls is the callers' again. */
void gw_communicator_drop_calls(struct gw_communicator *comm);
/* Most flows that calls need at the same time, either way. */
uint32_t gw_communicator_flows(const struct gw_communicator *comm);

#endif
