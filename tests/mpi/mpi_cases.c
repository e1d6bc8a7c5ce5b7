/*
 * A program for MPI that knows nothing of Gradwire, but for counting the sums that it is given:
 * compares what MPI_Allreduce() and its like give, with a library preloaded, to MPI's own.
 *
 *     mpi_cases FOLDER sums               whoever finds a wrong one says so
 *     mpi_cases FOLDER error              each rank says the error of its first sum
 *     mpi_cases FOLDER handler            its communicator's error handler does, and ends it
 *     mpi_cases FOLDER killed      the last rank dies; the others say the error of their sum
 *
 * What a rank says is in a file of FOLDER that has its number for a name.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gradwire.h>

enum {
    LARGE = (1 << 18) + 3, /* elements: of several segments of a ring, and odd */
    MANY = 70,             /* requests: more than a job takes calls */
    ELEMENTS = 1001,       /* of each of them */
    MESSAGE = 1 << 17,     /* floats: so large that the receiver has to ask for them */
};

static int given; /* sums that Gradwire was given */
static int rank, world;
static const char *folder;

/* The library's calls come by here, since a program's symbols are found first. */
int gradwire_allreduce_start(gradwire *job, const void *in, void *out, size_t count,
                             enum gradwire_type type, enum gradwire_op op, gradwire_call *call)
{
    int (*next)(gradwire *, const void *, void *, size_t, enum gradwire_type, enum gradwire_op,
                gradwire_call *);
    *(void **)&next = dlsym(RTLD_NEXT, "gradwire_allreduce_start");
    int code = next(job, in, out, count, type, op, call);
    given += code == GRADWIRE_OK;
    return code;
}

/* Into a file of this rank, since launchers may lose what is printed by who ends early. */
static void write_text(const char *format, ...)
{
    char path[4096];
    va_list values;
    snprintf(path, sizeof(path), "%s/%d", folder, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        MPI_Abort(MPI_COMM_WORLD, 2);
    va_start(values, format);
    vfprintf(file, format, values);
    va_end(values);
    fclose(file);
}

#define CHECK(is_right, ...)                                                                       \
    do {                                                                                           \
        if (is_right)                                                                              \
            break;                                                                                 \
        write_text(__VA_ARGS__);                                                                   \
        MPI_Abort(MPI_COMM_WORLD, 1);                                                              \
    } while (0)

/* Small integers, so that sums of floats are exact: other ones on each rank and in each round. */
static int value(int of, int round, int i)
{
    return (i * 7 + of * 131 + round * 17) % 1021 - 500;
}

static void fill(void *data, MPI_Datatype type, int count, int round)
{
    for (int i = 0; i < count; i++)
        if (type == MPI_FLOAT)
            ((float *)data)[i] = (float)value(rank, round, i);
        else if (type == MPI_DOUBLE)
            ((double *)data)[i] = value(rank, round, i);
        else
            ((int *)data)[i] = value(rank, round, i);
}

static void *memory(size_t size)
{
    void *data = calloc(size + 1, 1);
    CHECK(data != NULL, "out of memory");
    return data;
}

/* One all-reduce, in place or not, and by whom it must have been made. */
static void compare(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, bool in_place,
                    int by_gradwire)
{
    int size, before;
    MPI_Type_size(type, &size);
    size_t bytes = (size_t)size * (size_t)count;
    char *in = memory(bytes), *out = memory(bytes), *wanted = memory(bytes);
    fill(in, type, count, count);
    memcpy(out, in, bytes);
    out[bytes] = 42;
    PMPI_Allreduce(in, wanted, count, type, op, comm);
    before = given;
    CHECK(MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, type, op, comm) == MPI_SUCCESS,
          "a sum fails");
    CHECK(given - before == by_gradwire, "%d elements: %d sums, not %d", count, given - before,
          by_gradwire);
    CHECK(memcmp(out, wanted, bytes) == 0, "%d elements of %d bytes: wrong", count, size);
    CHECK(out[bytes] == 42, "%d elements of %d bytes: and one more", count, size);
    free(in), free(out), free(wanted);
}

static void compare_sizes(MPI_Comm comm, bool is_served)
{
    static const int counts[] = {0, 1, 353, 4099, LARGE};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            compare(comm, MPI_FLOAT, MPI_SUM, counts[i], in_place, is_served && counts[i] > 0);
            compare(comm, MPI_INT, MPI_SUM, counts[i], in_place, is_served && counts[i] > 0);
        }
    compare(comm, MPI_DOUBLE, MPI_SUM, 4099, false, is_served && getenv("GRADWIRE_MPI_DOUBLE"));
    compare(comm, MPI_INT, MPI_MAX, 4099, true, 0);
}

static void add_every_second(void *in, void *out, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((float *)out)[4 * i] += ((float *)in)[4 * i], ((float *)out)[4 * i + 2] += 1;
}

/* A type with holes needs an operation of its own. */
static void derived_types(void)
{
    MPI_Datatype type, resized;
    MPI_Op op;
    float in[8] = {1, -1, 0, -1, 2, -1, 0, -1}, out[8] = {0};
    int before = given;
    MPI_Type_vector(2, 1, 2, MPI_FLOAT, &type);
    MPI_Type_create_resized(type, 0, 4 * sizeof(float), &resized);
    MPI_Type_commit(&resized);
    MPI_Op_create(add_every_second, 1, &op);
    CHECK(MPI_Allreduce(in, out, 2, resized, op, MPI_COMM_WORLD) == MPI_SUCCESS, "derived fails");
    CHECK(out[0] == (float)world && out[4] == 2 * (float)world && out[1] == 0, "derived: wrong");
    CHECK(given == before, "a derived type went to Gradwire");
    MPI_Op_free(&op), MPI_Type_free(&type), MPI_Type_free(&resized);
}

static void communicators(void)
{
    MPI_Comm half, twin, alone, between;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    int mates;
    MPI_Comm_size(half, &mates);
    compare_sizes(half, mates > 1);
    compare(twin, MPI_FLOAT, MPI_SUM, 100, false, 1);
    compare(MPI_COMM_SELF, MPI_FLOAT, MPI_SUM, 100, false, 0);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    compare(alone, MPI_FLOAT, MPI_SUM, 100, true, 0);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
                         rank % 2 ? (world - 1) / 2 * 2 : (world - 2) / 2 * 2 + 1, 7, &between);
    compare(between, MPI_INT, MPI_SUM, 10, false, 0);
    MPI_Comm_free(&between), MPI_Comm_free(&half), MPI_Comm_free(&alone);
    MPI_Comm_disconnect(&twin);
}

/* The first sum of a communicator that is not waited for is MPI's; a barrier opens the job. */
static void requests_before_the_job(void)
{
    MPI_Comm twin;
    MPI_Request request;
    int one = 1, sum = 0, before = given;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (int by_gradwire = 0; by_gradwire < 2; by_gradwire++) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, twin, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == world && given - before == by_gradwire, "sum %d, %d given", sum,
              given - before);
        MPI_Barrier(twin);
        sum = 0;
    }
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, twin, &request);
    MPI_Comm_free(&twin);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == world, "request of a communicator that went away: %d", sum);
}

/* Takes back requests until all are, by one of the ways that MPI has. */
static void take_back(int way, int count, MPI_Request *requests)
{
    int flag = 0, index, some, indices[MANY + 2], left = count;
    switch (way) {
    case 0:
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        return;
    case 1:
        while (!flag)
            MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        return;
    case 2:
        for (int i = count; i-- > 0;)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        return;
    case 3:
        for (int i = 0; i < count; i += flag)
            MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        return;
    case 4:
        while (left-- > 0)
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        CHECK(index == MPI_UNDEFINED, "a request is left");
        return;
    case 5:
        for (; left > 0; left -= flag)
            MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
        return;
    case 6:
        for (; left > 0; left -= some)
            MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
        return;
    case 7:
        for (; left > 0; left -= some)
            MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
        return;
    default:
        for (int i = 0; i < count; i++) {
            for (flag = 0; !flag;)
                MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
}

/* What all ranks must have of what each has filled. MPI's own sums would do, but they take long
 * where ranks share cores. */
static void check_sum(const float *sum, int round)
{
    for (int i = 0; i < ELEMENTS; i++) {
        int wanted = 0;
        for (int of = 0; of < world; of++)
            wanted += value(of, round, i);
        CHECK(sum[i] == (float)wanted, "round %d: element %d is %g", round, i, (double)sum[i]);
    }
}

/* Sums under way between a message to the next rank and one from the previous. */
static void requests(int way)
{
    MPI_Request all[MANY + 2];
    float *out = memory(MESSAGE * sizeof(*out)), *in = memory(MESSAGE * sizeof(*in));
    float(*sums)[ELEMENTS] = memory(MANY * sizeof(*sums));
    float(*parts)[ELEMENTS] = memory(MANY * sizeof(*parts));
    int next = (rank + 1) % world, previous = (rank + world - 1) % world, before = given;
    out[MESSAGE - 1] = (float)rank;
    MPI_Irecv(in, MESSAGE, MPI_FLOAT, previous, way, MPI_COMM_WORLD, &all[0]);
    for (int i = 0; i < MANY; i++) {
        fill(parts[i], MPI_FLOAT, ELEMENTS, i + way);
        memcpy(sums[i], parts[i], sizeof(sums[i]));
        MPI_Iallreduce(i % 2 ? MPI_IN_PLACE : parts[i], sums[i], ELEMENTS, MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &all[i + 1]);
    }
    MPI_Isend(out, MESSAGE, MPI_FLOAT, next, way, MPI_COMM_WORLD, &all[MANY + 1]);
    take_back(way, MANY + 2, all);
    for (int i = 0; i < MANY + 2; i++)
        CHECK(all[i] == MPI_REQUEST_NULL, "request %d is left", i);
    CHECK(given - before == MANY, "%d of the sums", given - before);
    CHECK(in[MESSAGE - 1] == (float)previous, "the message is wrong");
    for (int i = 0; i < MANY; i++)
        check_sum(sums[i], i + way);
    free(out), free(in), free(sums), free(parts);
}

/* Who waits for a sum lets the message out that another rank waits for before it sums. */
static void message_across(void)
{
    float *data = memory(MESSAGE * sizeof(*data)), sum, one = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Isend(data, MESSAGE, MPI_FLOAT, 1, 99, MPI_COMM_WORLD, &request);
    else if (rank == 1)
        MPI_Recv(data, MESSAGE, MPI_FLOAT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == (float)world, "the sum is %g", (double)sum);
    free(data);
}

static void write_error(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    write_text("%s", text);
}

/* An error handler of the program, for a communicator of its own. */
static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    write_error(*code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int sum_started(float *in, float *out)
{
    MPI_Request request;
    int code = MPI_Iallreduce(in, out, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    return code ? code : MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

/* Sums until that fails, odd ranks with requests. With a rank dead leaves without MPI, which would
 * wait for it. */
static void sum_until_error(bool is_killed)
{
    float in[ELEMENTS] = {0}, out[ELEMENTS];
    int code = MPI_SUCCESS;
    for (int i = 0; code == MPI_SUCCESS; i++) {
        if (is_killed && rank == world - 1 && i == 3)
            raise(SIGKILL);
        code = rank % 2 && i > 0
                   ? sum_started(in, out)
                   : MPI_Allreduce(in, out, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    write_error(code);
    CHECK(MPI_Allreduce(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS,
          "a sum after the error");
    if (is_killed)
        _exit(0);
}

/* That of the communicator is asked, not that of MPI_COMM_WORLD. */
static void sum_with_handler(void)
{
    MPI_Comm twin;
    MPI_Errhandler handler;
    float in = 1, out;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(twin, handler);
    MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, twin);
    CHECK(false, "nobody has called the handler");
}

static void all_cases(void)
{
    requests_before_the_job();
    compare_sizes(MPI_COMM_WORLD, true);
    message_across();
    derived_types();
    communicators();
    for (int way = 0; way < 9; way++)
        requests(way);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *what = argv[2];
    folder = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(what, "sums") == 0)
        all_cases();
    else if (strcmp(what, "handler") == 0)
        sum_with_handler();
    else
        sum_until_error(strcmp(what, "killed") == 0);
    return MPI_Finalize();
}
