/* The registrar's own; see registrar.h. */
#ifndef GW_CORE_REGISTRAR_IMPL_H
#define GW_CORE_REGISTRAR_IMPL_H

#include "core/ranks/mesh_wire.h"
#include "core/ranks/outbox.h"
#include "core/ranks/registrar.h"

/* What a rank may be owed; bits. */
enum gw_owed {
    GW_OWED_TABLE = 1,
    GW_OWED_FAILURE = 2,
    GW_OWED_BYE = 4,
};

struct gw_seat {
    struct gw_path path;
    gw_time heard;  /* the last time that it was known to live */
    uint32_t table; /* that it said it has, by a registrar that is gone; 0: none */
    bool is_here;   /* has come and has not gone */
    bool is_old;    /* of a job that has ended */
    bool has_said_bye;
    bool awaits_failure, awaits_bye;              /* memory for what it may say is posted */
    uint8_t owed;                                 /* enum gw_owed */
    uint8_t failure[GW_MESH_FAILURE_SIZE], bye;   /* what it says */
    uint8_t told[GW_MESH_FAILURE_SIZE], farewell; /* what it is told */
};

struct gw_registrar {
    struct gw_registrar_cfg cfg;
    enum gw_registrar_phase phase;
    struct gw_notice_path notice_path; /* rate 0: not known */
    struct gw_mesh_failure failure;    /* of the job */
    struct gw_outbox outbox;           /* to seats, by rank */
    struct gw_rank_place *places;      /* of seats; address 0: nobody has come */
    struct gw_seat *seats;
    uint8_t *table;
    uint32_t present;
    uint32_t owing;
    uint32_t byes; /* of this job */
    bool is_newer; /* than the job of whoever has met others and is not known here */
    uint8_t notice;
};

/* Sets what the rank is owed: enum gw_owed. */
void gw_registrar_owe(struct gw_registrar *registrar, uint32_t rank, uint8_t owed);

/* Sends what is owed, as far as there is room. */
void gw_registrar_tell_all(struct gw_registrar *registrar, gw_time now);

/* A rank still waits although the job has ended: what it was told has not reached it. */
void gw_registrar_tell_again(struct gw_registrar *registrar, uint32_t rank);

#endif
