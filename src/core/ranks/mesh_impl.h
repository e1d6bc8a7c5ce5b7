/* Inside of the mesh, shared by its files and by nobody else. See mesh.h. */
#ifndef GW_CORE_MESH_IMPL_H
#define GW_CORE_MESH_IMPL_H

#include "base/index_queue.h"
#include "base/map.h"
#include "core/ranks/mesh.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/outbox.h"

struct gw_mesh_rank {
    struct gw_path path; /* rate 0: as the registrar's */
    uint32_t believed;   /* the address of a way that came before the table; 0: none */
    bool is_up;          /* there is a way to it */
    bool is_wanted;      /* there should be one */
    bool is_queued;      /* and that is yet to be said */
    bool is_owed;        /* to be told of the failure */
    uint8_t heard[GW_MESH_FAILURE_SIZE]; /* what it may tell us */
};

/* What is posted for messages of the registrar. */
struct gw_mesh_posted {
    bool table, failure, bye;
};

struct gw_mesh {
    struct gw_mesh_cfg cfg;
    enum gw_mesh_state state;
    gw_time began_at;

    /* The registrar, whose number as somebody to tell is `world`. */
    struct gw_path registrar_path;
    uint32_t registrar; /* its address; 0: never known */
    bool has_registrar; /* it is there */
    bool owes_failure, owes_bye;
    bool knows_failure; /* the registrar does */
    struct gw_mesh_posted posted;
    uint8_t heard[GW_MESH_FAILURE_SIZE], heard_bye; /* what it may tell us */
    uint8_t told[GW_MESH_FAILURE_SIZE], told_bye;   /* what all are told */

    /* The table. */
    bool has_met;           /* it is known and counts */
    bool is_told, has_come; /* without payload: by the driver; its message has come */
    uint8_t notice_units;   /* of the job */
    uint32_t table_sum;     /* once it is known */
    uint8_t *table;         /* what arrives */
    struct gw_rank_place *places, *others; /* the table; room for reading another one */
    uint32_t *addresses;
    struct gw_map map; /* from address to rank */
    struct gw_mesh_rank *ranks;

    /* Leaving, and failing. */
    bool has_talked;    /* another rank may miss us: there was a message, a way or a sum */
    gw_time leave_by;   /* nobody is waited for longer */
    gw_time bye_at;     /* when BYE is said again, to find out whether there is a registrar */
    gw_time tell_until; /* who has not been told of the failure by then, finds out alone */
    gw_time retry_at;   /* to tell those for whom there was no room */
    uint32_t owed;      /* ranks that are owed the failure */
    struct gw_mesh_failure failure;
    struct gw_outbox outbox;

    /* Events. */
    bool has_met_event, has_last_event;
    struct gw_mesh_event last;
    uint16_t *wants;
    struct gw_index_queue wants_queue; /* of these, the ones that have not been polled */
};

/* mesh_meet.c */
/* Posts memory for what the registrar may say, where there is none. */
void gw_mesh_await_registrar(struct gw_mesh *mesh);
/* The registrar has gone, perhaps in the middle of its table: one that comes back says it anew. */
void gw_mesh_await_table_again(struct gw_mesh *mesh);
/* The table, so many bytes of it, has come. */
void gw_mesh_take_table(struct gw_mesh *mesh, uint64_t bytes, gw_time now);

/* mesh_end.c */
/* The job has failed. `teller` told us: a rank, `world` (the registrar), or GW_OUTBOX_NOBODY. */
void gw_mesh_end(struct gw_mesh *mesh, const struct gw_mesh_failure *failure, uint32_t teller,
                 gw_time now);
/* Somebody has told us of a failure. */
void gw_mesh_take_failure(struct gw_mesh *mesh, uint32_t teller, const struct gw_event *event,
                          gw_time now);
/* The rank has gone: it need not be told of a failure. */
void gw_mesh_owe_nothing(struct gw_mesh *mesh, uint32_t rank);
/* The registrar says that all leave. */
void gw_mesh_take_bye(struct gw_mesh *mesh);
/* The registrar has come back, perhaps without memory: it is told again what it should know. */
void gw_mesh_tell_again(struct gw_mesh *mesh, gw_time now);
/* What we said has arrived, or has not. */
void gw_mesh_take_outcome(struct gw_mesh *mesh, const struct gw_outbox_message *message,
                          bool is_there, gw_time now);
/* Sends what is owed, as far as there is room. */
void gw_mesh_tell_all(struct gw_mesh *mesh, gw_time now);

/* What a rank's flows count with. */
static inline const struct gw_path *gw_mesh_path_of(const struct gw_mesh *mesh, uint32_t rank)
{
    const struct gw_path *path = &mesh->ranks[rank].path;
    return path->rate_bps ? path : &mesh->registrar_path;
}

static inline bool gw_mesh_is_reached(const struct gw_mesh *mesh, uint32_t rank)
{
    return mesh->has_met &&
           (mesh->cfg.has_ways || mesh->ranks[rank].is_up || rank == mesh->cfg.rank);
}

#endif
