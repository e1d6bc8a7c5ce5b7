/* What the registrar tells each rank: the table, the failure or the end of the job. See
 * registrar.h. */
#include "base/assert.h"
#include "base/error.h"
#include "core/ranks/registrar_impl.h"

void gw_registrar_owe(struct gw_registrar *registrar, uint32_t rank, uint8_t owed)
{
    struct gw_seat *seat = &registrar->seats[rank];
    registrar->owing += (uint32_t)(owed != 0) - (uint32_t)(seat->owed != 0);
    seat->owed = owed;
}

/* Sends one of the messages that the rank is owed. False: there is no room. */
static bool tell(struct gw_registrar *registrar, uint32_t rank, gw_time now)
{
    const struct gw_registrar_cfg *cfg = &registrar->cfg;
    struct gw_seat *seat = &registrar->seats[rank];
    uint8_t what = seat->owed & GW_OWED_FAILURE ? GW_OWED_FAILURE
                   : seat->owed & GW_OWED_BYE   ? GW_OWED_BYE
                                                : GW_OWED_TABLE;
    struct gw_send send = {
        .peer = registrar->places[rank].address,
        .class = GW_CLASS_DATA_MAX, /* everybody waits for it */
        .transport = cfg->transport,
        .path = seat->path,
    };
    if (what == GW_OWED_FAILURE) {
        gw_mesh_failure_write(&registrar->failure, seat->told);
        send.tag = cfg->is_bare ? gw_mesh_failure_tag(&registrar->failure) : GW_MESH_TAG_FAILURE;
        send.data = seat->told;
        send.bytes = sizeof(seat->told);
    } else if (what == GW_OWED_BYE) {
        send.tag = GW_MESH_TAG_BYE;
        send.data = &seat->farewell;
        send.bytes = sizeof(seat->farewell);
    } else {
        send.tag = GW_MESH_TAG_TABLE;
        send.data = registrar->table;
        send.bytes = gw_ranks_table_size(cfg->world);
    }
    if (cfg->is_bare)
        send.data = NULL;
    struct gw_outbox_message message = {.tag = send.tag, .to = rank};
    int code = gw_endpoint_send(cfg->endpoint, &send, &message.flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    if (code)
        return false;
    gw_outbox_add(&registrar->outbox, &message);
    gw_registrar_owe(registrar, rank, (uint8_t)(seat->owed & ~what));
    return true;
}

/* Whether something that the rank is owed may leave: a table is not sent twice at the same time. */
static bool is_next(const struct gw_registrar *registrar, uint32_t rank)
{
    uint8_t owed = registrar->seats[rank].owed;
    return owed &&
           (owed != GW_OWED_TABLE || !gw_outbox_has(&registrar->outbox, rank, GW_MESH_TAG_TABLE));
}

void gw_registrar_tell_all(struct gw_registrar *registrar, gw_time now)
{
    for (uint32_t rank = 0; rank < registrar->cfg.world && registrar->owing; rank++)
        while (is_next(registrar, rank))
            if (gw_outbox_is_full(&registrar->outbox) || !tell(registrar, rank, now))
                return;
}

void gw_registrar_tell_again(struct gw_registrar *registrar, uint32_t rank)
{
    bool has_failed = registrar->failure.reason != GW_JOB_OK;
    uint32_t tag = !has_failed              ? GW_MESH_TAG_BYE
                   : registrar->cfg.is_bare ? gw_mesh_failure_tag(&registrar->failure)
                                            : GW_MESH_TAG_FAILURE;
    if (!gw_outbox_has(&registrar->outbox, rank, tag))
        gw_registrar_owe(registrar, rank, has_failed ? GW_OWED_FAILURE : GW_OWED_BYE);
}
