/* Inside of the team, shared by its files and by nobody else. See team.h. */
#ifndef GW_NET_TEAM_IMPL_H
#define GW_NET_TEAM_IMPL_H

#include "base/index_queue.h"
#include "core/ranks/coll_run.h"
#include "core/host/endpoint.h"
#include "net/path_meter.h"
#include "net/ranks/team_flows.h"
#include "net/ranks/rank_table.h"
#include "net/ranks/team_store.h"

enum {
    GW_TEAM_RUNS = 2, /* all-reduces that overlap */
    GW_TEAM_DIAL_NONE = -1,
    GW_TEAM_EVENTS_MAX = 4 * GW_TEAM_CALLS_MAX,
};

/* What the failing tell each other. */
struct gw_team_failure {
    uint32_t reason; /* enum gw_job_reason; big-endian on the wire, as the other */
    uint32_t about;  /* rank */
};

_Static_assert((int)GW_NEIGHBOURS_DIALS_MAX > (int)GW_OVERLAY_WORLD_MAX, "all ranks and a switch");

struct gw_team_rank {
    struct gw_rank_table_entry at;  /* its address is 0: not known yet */
    bool is_dialled;                /* by us */
    bool is_up;                     /* there is a way to it */
    uint16_t peer;                  /* of that way */
    struct gw_team_failure failure; /* memory for what it may tell us */
};

enum gw_team_state {
    GW_TEAM_MEETING,    /* rank 0: all have come; others: the table has. Then: connecting */
    GW_TEAM_CONNECTING, /* those whom all-reduces need are up: running */
    GW_TEAM_RUNNING,
    GW_TEAM_LEAVING, /* all others leave, too: over */
    GW_TEAM_OVER,
};

struct gw_team_run {
    struct gw_coll_run *run;
    uint64_t call;
    bool is_running;
};

/* A tensor that waits for its turn. */
struct gw_team_tensor {
    struct gw_tensor tensor;
    uint64_t call;
};

enum gw_team_move_state {
    GW_TEAM_MOVE_FREE,
    GW_TEAM_MOVE_WAITS, /* a way and room move it on */
    GW_TEAM_MOVE_RUNS,  /* the endpoint's event moves it on */
};

struct gw_team_move {
    struct gw_team_message message;
    gw_time since; /* it runs */
    enum gw_team_move_state state;
    uint32_t flow;
};

struct gw_team {
    struct gw_team_cfg cfg;
    struct gw_endpoint *ep;
    uint16_t node;
    struct gw_team_rank *ranks;
    int dials[GW_NEIGHBOURS_DIALS_MAX]; /* rank of each, but of the switch's */
    int switch_dial;                    /* or GW_TEAM_DIAL_NONE */
    bool is_switch_up;
    unsigned char *table;
    uint32_t *addresses;  /* of all ranks, for the runs */
    uint8_t notice_units; /* of the job, once the table is known */
    enum gw_team_state state;
    uint32_t failures_left;
    struct gw_team_failure failure; /* as on the wire; told to others */
    char text[GW_TEAM_TEXT_MAX];
    gw_time progress_at;
    uint64_t arrivals;         /* as of then */
    struct gw_rate_meter rate; /* of what this rank sends, in payload */
    gw_time measure_at;        /* when paths are looked at next */

    struct gw_team_run runs[GW_TEAM_RUNS];
    struct gw_team_tensor tensors[GW_TEAM_CALLS_MAX];
    struct gw_index_queue tensor_queue; /* of these, the ones that wait */
    uint32_t reduces;                   /* begun */
    struct gw_team_move moves[GW_TEAM_CALLS_MAX];
    int32_t farewell; /* what ranks that leave add up */
    struct gw_team_store *store;

    struct gw_team_event events[GW_TEAM_EVENTS_MAX];
    struct gw_index_queue waiting; /* of these, the ones that have not been polled */
};

/* team_path.c */
/* What is known of the path to a rank, and of the one to the farthest that is up. */
struct gw_path gw_team_path(const struct gw_team *comm, uint32_t rank);
struct gw_path gw_team_path_all(const struct gw_team *comm);
/* How bursts to other ranks are announced. */
struct gw_notice_terms gw_team_terms(const struct gw_team *comm);
/* What is measured now, for the formula. */
struct gw_notice_path gw_team_notice_path(const struct gw_team *comm);
/* Tells all-reduces what is known of paths and announcements now. */
void gw_team_refresh(struct gw_team *comm);
/* Takes note of what has been sent, and from beat to beat of what neighbours have measured. */
void gw_team_measure(struct gw_team *comm, gw_time now);

/* team_meet.c */
/* Asks rank 0 for a session. Returns 0, or an error with `error` filled. */
int gw_team_dial_rank_0(struct gw_team *comm, char *error);
/* Who has the address; `world`: nobody. */
uint32_t gw_team_rank_of(const struct gw_team *comm, uint32_t address);
/* The table of ranks has come, as so many bytes. */
void gw_team_take_table(struct gw_team *comm, uint64_t bytes, gw_time now);
/* Moves on from one state to the next. */
void gw_team_step(struct gw_team *comm, gw_time now);

/* team_fail.c */
/* That rank has told us that the job has failed. */
void gw_team_take_failure(struct gw_team *comm, uint32_t rank, gw_time now);
/* Fails what has stalled. All-reduces watch themselves. */
void gw_team_watch(struct gw_team *comm, gw_time now);

/* team_switch.c */
/* Asks the switch for a session. Returns 0, or an error with `error` filled. */
int gw_team_dial_switch(struct gw_team *comm, char *error);
/* Takes an event of the switch. */
void gw_team_switch_event(struct gw_team *comm, const struct gw_neighbour_event *event,
                          gw_time now);
/* Whether there is a switch to go by, and it is silent. */
bool gw_team_is_cut_off(const struct gw_team *comm);
/* From now on packets go straight to those whom we have sessions with. */
void gw_team_go_direct(struct gw_team *comm);

/* team_calls.c */
int gw_team_open_runs(struct gw_team *comm);
void gw_team_close_runs(struct gw_team *comm);
/* Takes an event of the endpoint that is about a call. */
void gw_team_calls_event(struct gw_team *comm, const struct gw_event *event, gw_time now);
/* Whether calls are worked on. */
bool gw_team_takes_calls(const struct gw_team *comm);
/* Starts what waits, ends what has run. */
void gw_team_advance(struct gw_team *comm, gw_time now);
bool gw_team_has_calls(const struct gw_team *comm);
/* The rank of a message to us that has not begun although its call has stalled; `world`: none. */
uint32_t gw_team_overdue(const struct gw_team *comm, gw_time now);
/* Memory of calls is the callers' again. */
void gw_team_drop_calls(struct gw_team *comm);
/* Most flows that calls need at the same time, either way. */
uint32_t gw_team_flows(const struct gw_team *comm);

#endif
