/*
 * The functions of MPI that a preloaded library takes the place of: all-reduces that Gradwire can
 * do, what may take back their requests, and the ends of communicators. Everything else, and every
 * call here that is not ours, goes to MPI.
 */
#include <stdlib.h>

#include "group.h"

#define EXPORTED __attribute__((visibility("default")))

static bool wants_double(void)
{
    const char *text = getenv("GRADWIRE_MPI_DOUBLE");
    return text && *text;
}

/* Whether Gradwire sums such arguments; all ranks answer alike, since MPI wants equal ones. */
static bool is_ours(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                    struct gw_sum_args *args)
{
    if (op != MPI_SUM || count <= 0)
        return false;
    *args = (struct gw_sum_args){
        .in = in == MPI_IN_PLACE ? out : in, .out = out, .count = (size_t)count};
    if (type == MPI_FLOAT)
        args->type = GRADWIRE_FLOAT32;
    else if (type == MPI_INT || type == MPI_INT32_T)
        args->type = GRADWIRE_INT32;
    else if (type == MPI_DOUBLE && wants_double())
        args->type = GRADWIRE_FLOAT64;
    else
        return false;
    return true;
}

/* In a call that all ranks wait in: opens the job of a communicator that was asked for a sum. */
static int open_if_asked(struct gw_group *group)
{
    return group && !gw_group_is_open(group) ? gw_group_open(group) : MPI_SUCCESS;
}

EXPORTED int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm)
{
    struct gw_sum_args args;
    bool ours = is_ours(in, out, count, type, op, &args);
    struct gw_group *group = gw_group_of(comm, ours);
    int code = count > 0 ? open_if_asked(group) : MPI_SUCCESS;
    if (code)
        return code;
    return ours && group ? gw_group_sum(group, &args)
                         : PMPI_Allreduce(in, out, count, type, op, comm);
}

/* Must not wait for anybody, so it cannot open a job. */
EXPORTED int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                            MPI_Comm comm, MPI_Request *request)
{
    struct gw_sum_args args;
    bool ours = is_ours(in, out, count, type, op, &args);
    struct gw_group *group = ours ? gw_group_of(comm, true) : NULL;
    return group && gw_group_is_open(group)
               ? gw_group_sum_start(group, &args, request)
               : PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

EXPORTED int MPI_Barrier(MPI_Comm comm)
{
    int code = open_if_asked(gw_group_of(comm, false));
    return code ? code : PMPI_Barrier(comm);
}

EXPORTED int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    gw_groups_progress();
    return gw_groups_code(PMPI_Test(request, flag, status));
}

EXPORTED int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    gw_groups_progress();
    return gw_groups_code(PMPI_Testall(count, requests, flag, statuses));
}

EXPORTED int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag,
                         MPI_Status *status)
{
    gw_groups_progress();
    return gw_groups_code(PMPI_Testany(count, requests, index, flag, status));
}

EXPORTED int MPI_Testsome(int count, MPI_Request requests[], int *ended, int indices[],
                          MPI_Status statuses[])
{
    gw_groups_progress();
    return gw_groups_code(PMPI_Testsome(count, requests, ended, indices, statuses));
}

EXPORTED int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    gw_groups_progress();
    return gw_groups_code(PMPI_Request_get_status(request, flag, status));
}

/* Who waits tests as long as sums are in work, and then waits as MPI does. */

EXPORTED int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    for (int flag = 0; gw_groups_progress(); gw_groups_pause()) {
        int code = PMPI_Test(request, &flag, status);
        if (code || flag)
            return gw_groups_code(code);
    }
    return gw_groups_code(PMPI_Wait(request, status));
}

EXPORTED int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    for (int flag = 0; gw_groups_progress(); gw_groups_pause()) {
        int code = PMPI_Testall(count, requests, &flag, statuses);
        if (code || flag)
            return gw_groups_code(code);
    }
    return gw_groups_code(PMPI_Waitall(count, requests, statuses));
}

EXPORTED int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    for (int flag = 0; gw_groups_progress(); gw_groups_pause()) {
        int code = PMPI_Testany(count, requests, index, &flag, status);
        if (code || flag)
            return gw_groups_code(code);
    }
    return gw_groups_code(PMPI_Waitany(count, requests, index, status));
}

EXPORTED int MPI_Waitsome(int count, MPI_Request requests[], int *ended, int indices[],
                          MPI_Status statuses[])
{
    for (; gw_groups_progress(); gw_groups_pause()) {
        int code = PMPI_Testsome(count, requests, ended, indices, statuses);
        if (code || *ended)
            return gw_groups_code(code);
    }
    return gw_groups_code(PMPI_Waitsome(count, requests, ended, indices, statuses));
}

/* Of a communicator that goes away. */
static void leave(MPI_Comm comm)
{
    struct gw_group *group = gw_group_of(comm, false);
    if (group && gw_group_is_open(group))
        gw_group_leave(group);
}

EXPORTED int MPI_Comm_free(MPI_Comm *comm)
{
    leave(*comm);
    return PMPI_Comm_free(comm);
}

EXPORTED int MPI_Comm_disconnect(MPI_Comm *comm)
{
    leave(*comm);
    return PMPI_Comm_disconnect(comm);
}

EXPORTED int MPI_Finalize(void)
{
    gw_groups_leave();
    return PMPI_Finalize();
}
