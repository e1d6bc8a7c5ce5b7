/*
 * .npy files: what is read of files that the tests make byte by byte, what each refusal says, and
 * that a file is written as NumPy does, whole or not at all.
 */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/npy.h"

enum {
    PATH_SIZE = 256,
    FILE_MAX = 4096,
};

struct fixture {
    char folder[64];
    char path[PATH_SIZE]; /* of a file there */
    char error[GW_NPY_ERROR_MAX];
    struct gw_npy array;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    strcpy(f->folder, "/tmp/gradwire_npy_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/a.npy", f->folder);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_npy_free(&f->array);
    unlink(f->path);
    assert_int_equal(rmdir(f->folder), 0); /* nothing else was left there */
    free(f);
    return 0;
}

static void put_file(const struct fixture *f, const void *bytes, size_t size)
{
    FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t get_file(const struct fixture *f, unsigned char bytes[FILE_MAX])
{
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    return size;
}

/* Puts magic, version, length and text of a header together, and data behind it. Returns its size.
 */
static size_t make(unsigned char *bytes, int version, const char *header, const void *data,
                   size_t size)
{
    size_t length = strlen(header), begin = version == 1 ? 10 : 12;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[7] = 0;
    for (size_t i = 8; i < begin; i++)
        bytes[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(bytes + begin, header, length);
    if (size)
        memcpy(bytes + begin + length, data, size);
    return begin + length + size;
}

static void put(const struct fixture *f, int version, const char *header, const void *data,
                size_t size)
{
    unsigned char bytes[FILE_MAX];
    put_file(f, bytes, make(bytes, version, header, data, size));
}

/* The file is refused with a line that names it and says all of `part`. */
static void refuse(struct fixture *f, const char *part)
{
    assert_int_equal(gw_npy_read(f->path, &f->array, f->error), -1);
    if (strncmp(f->error, f->path, strlen(f->path)) != 0 || !strstr(f->error, part))
        fail_msg("'%s' does not name the file and '%s'", f->error, part);
    assert_null(strchr(f->error, '\n'));
    assert_null(f->array.data);
}

static void npy_read__takes_every_version_type_and_order(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *descr;
        enum gw_npy_type type;
        size_t size;
    } types[] = {{"<f4", GW_NPY_FLOAT32, 4}, {"<f2", GW_NPY_FLOAT16, 2}, {"<i4", GW_NPY_INT32, 4}};
    unsigned char data[6 * 4];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(7 * i + 1);
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < GW_COUNT_OF(types); i++)
            for (int is_fortran = 0; is_fortran < 2; is_fortran++) {
                char header[128];
                snprintf(header, sizeof(header),
                         "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3), }   \n",
                         types[i].descr, is_fortran ? "True" : "False");
                put(f, version, header, data, 6 * types[i].size);
                assert_int_equal(gw_npy_read(f->path, &f->array, f->error), 0);
                assert_int_equal(f->array.type, types[i].type);
                assert_int_equal(gw_npy_element(f->array.type), types[i].size);
                assert_int_equal(f->array.is_fortran, is_fortran);
                assert_int_equal(f->array.dims, 2);
                assert_true(f->array.shape[0] == 2 && f->array.shape[1] == 3);
                assert_int_equal(f->array.count, 6);
                assert_memory_equal(f->array.data, data, 6 * types[i].size);
                gw_npy_free(&f->array);
            }
}

static void npy_read__takes_every_shape(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        uint32_t dims;
        uint64_t count;
    } shapes[] = {
        {"()", 0, 1},        {"(0,)", 1, 0},       {"(7,)", 1, 7},
        {"(3, 0, 5)", 3, 0}, {"(2,1,2 , )", 3, 4}, {"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)", 16, 2},
    };
    static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < GW_COUNT_OF(shapes); i++) {
        char header[128];
        snprintf(header, sizeof(header),
                 "{\"shape\":%s,\"fortran_order\":False,\"descr\":\"<f4\"}\n", shapes[i].text);
        put(f, 1, header, data, 4 * shapes[i].count);
        assert_int_equal(gw_npy_read(f->path, &f->array, f->error), 0);
        assert_int_equal(f->array.dims, shapes[i].dims);
        assert_int_equal(f->array.count, shapes[i].count);
        assert_memory_equal(f->array.data, data, 4 * shapes[i].count);
        gw_npy_free(&f->array);
    }
}

static void npy_read__says_what_is_wrong_with_a_header(void **state)
{
    struct fixture *f = *state;
    static const char broken[] = "not a dictionary of descr, fortran_order and shape";
    static const struct {
        const char *header, *part;
    } bad[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "'>f4', which is big-endian"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "'|O', which are Python obj"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "'<f8'; float32 '<f4'"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structured"},
        {"{'descr': '<f4\x1b[2J', 'fortran_order': False, 'shape': (1,), }", "not a text"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "tuple of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "tuple of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "tuple of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2), }", "tuple of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "larger than any memory"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,), }",
         "larger than any memory"}, /* 2^63 bytes: a size, but not an object's */
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }",
         "larger than any memory"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,), }",
         "tuple of numbers"},
        {"{'descr': '<f4', 'shape': (1,), }", broken},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", "'descr' twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'size': 4}", "key 'size'"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,), }", broken},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", broken},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", broken},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ,}", broken},
        {"['descr']", broken},
        {"", broken},
    };
    for (size_t i = 0; i < GW_COUNT_OF(bad); i++) {
        put(f, 1, bad[i].header, "1234", 4);
        refuse(f, bad[i].part);
    }
}

/* One dimension more than there is room for. */
static void npy_read__limits_dimensions(void **state)
{
    struct fixture *f = *state;
    char header[1024] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < GW_NPY_DIMS_MAX; i++)
        strcat(header, "1,");
    char *end = header + strlen(header);
    strcpy(end, "), }\n");
    put(f, 1, header, "1234", 4);
    assert_int_equal(gw_npy_read(f->path, &f->array, f->error), 0);
    assert_int_equal(f->array.dims, GW_NPY_DIMS_MAX);
    gw_npy_free(&f->array);
    strcpy(end, "1,), }\n");
    put(f, 1, header, "1234", 4);
    refuse(f, "more than 64 dimensions");
}

static void npy_read__says_what_is_wrong_with_a_file(void **state)
{
    struct fixture *f = *state;
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }\n";
    unsigned char bytes[FILE_MAX];
    static const float data[5];
    size_t size = make(bytes, 1, header, data, sizeof(data)), begin = size - sizeof(data);

    refuse(f, "No such file");
    for (size_t cut = 0; cut < begin; cut++) {
        put_file(f, bytes, cut);
        refuse(f, cut < 8 ? "not an .npy file" : "ends within its header, after");
    }
    for (size_t cut = begin; cut < size; cut++) {
        char part[64];
        snprintf(part, sizeof(part), "truncated: %zu bytes of data, 20 wanted", cut - begin);
        put_file(f, bytes, cut);
        refuse(f, part);
    }
    put_file(f, bytes, size + 3);
    refuse(f, "3 bytes behind its data");
    bytes[6] = 4;
    put_file(f, bytes, size);
    refuse(f, "format 4.0");
    bytes[6] = bytes[7] = 1;
    put_file(f, bytes, size);
    refuse(f, "format 1.1");
    bytes[0] ^= 1;
    put_file(f, bytes, size);
    refuse(f, "not an .npy file");
    make(bytes, 2, header, data, sizeof(data));
    bytes[10] = 2; /* 128 KiB */
    put_file(f, bytes, size);
    refuse(f, "bytes long; 65536 at most");
}

/* As NumPy writes it: data begin at a multiple of 64. */
static void npy_write__makes_the_bytes_of_numpy(void **state)
{
    struct fixture *f = *state;
    unsigned char bytes[FILE_MAX];
    int32_t data[6] = {1, -2, 3, -4, 5, INT32_MIN};
    struct gw_npy array = {
        .type = GW_NPY_INT32, .dims = 2, .shape = {2, 3}, .count = 6, .data = data};
    static const char header[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran_order': "
                                 "False, 'shape': (2, 3), }";
    assert_int_equal(gw_npy_write(f->path, &array, f->error), 0);
    assert_int_equal(get_file(f, bytes), 128 + sizeof(data));
    assert_memory_equal(bytes, header, sizeof(header) - 1);
    for (size_t i = sizeof(header) - 1; i < 127; i++)
        assert_int_equal(bytes[i], ' ');
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, data, sizeof(data));
}

static void npy_write__is_read_again_as_the_same(void **state)
{
    struct fixture *f = *state;
    static const struct gw_npy arrays[] = {
        {.type = GW_NPY_FLOAT32, .count = 1},
        {.type = GW_NPY_FLOAT16, .dims = 1, .shape = {5}, .count = 5},
        {.type = GW_NPY_FLOAT32, .dims = 2, .shape = {0, 9}, .is_fortran = true},
        {.type = GW_NPY_INT32, .dims = 3, .shape = {2, 1, 2}, .count = 4, .is_fortran = true},
    };
    for (size_t i = 0; i < GW_COUNT_OF(arrays); i++) {
        unsigned char data[32];
        struct gw_npy array = arrays[i];
        array.data = data;
        memset(data, (int)(17 + i), sizeof(data));
        assert_int_equal(gw_npy_write(f->path, &array, f->error), 0); /* over the one before */
        assert_int_equal(gw_npy_read(f->path, &f->array, f->error), 0);
        assert_true(gw_npy_is_alike(&array, &f->array, f->error));
        assert_int_equal(f->array.count, array.count);
        assert_memory_equal(f->array.data, data, array.count * gw_npy_element(array.type));
        gw_npy_free(&f->array);
    }
}

/* The file system takes 4 KiB of a larger file: the old file stays, and nothing lies beside it. */
static void npy_write__that_fails_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, low;
    unsigned char before[FILE_MAX], after[FILE_MAX];
    static float data[2048];
    struct gw_npy array = {.dims = 1, .shape = {1}, .count = 1, .data = data};
    assert_int_equal(gw_npy_write(f->path, &array, f->error), 0);
    size_t size = get_file(f, before);
    array.shape[0] = array.count = GW_COUNT_OF(data);
    getrlimit(RLIMIT_FSIZE, &old);
    low = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    int code = gw_npy_write(f->path, &array, f->error);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(code, -1);
    assert_non_null(strstr(f->error, f->path));
    assert_non_null(strstr(f->error, "File too large"));
    assert_int_equal(get_file(f, after), size);
    assert_memory_equal(before, after, size);
}

/* Else root would turn /dev/null into a file. A pipe of our own is the special file here. */
static void npy_write__replaces_files_only(void **state)
{
    struct fixture *f = *state;
    float number = 1;
    struct gw_npy array = {.count = 1, .data = &number};
    struct stat info;
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(gw_npy_write(f->path, &array, f->error), -1);
    assert_non_null(strstr(f->error, "not a regular file"));
    assert_int_equal(stat(f->path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    refuse(f, "not a regular file"); /* at once, without a writer */
    assert_int_equal(gw_npy_write(f->folder, &array, f->error), -1);
    assert_non_null(strstr(f->error, "not a regular file"));
    assert_int_equal(gw_npy_write("/nowhere/at/all.npy", &array, f->error), -1);
    assert_string_equal(f->error, "cannot write /nowhere/at/all.npy: No such file or directory");
    assert_int_equal(gw_npy_write("", &array, f->error), -1);
    assert_string_equal(f->error, "cannot write a file without a name");
}

static void npy_try_write__leaves_nothing(void **state)
{
    struct fixture *f = *state;
    char below[PATH_SIZE + 8];
    assert_int_equal(gw_npy_try_write(f->path, f->error), 0);
    assert_int_equal(access(f->path, F_OK), -1);
    snprintf(below, sizeof(below), "%s/b.npy", f->path);
    assert_int_equal(gw_npy_try_write(below, f->error), -1);
    assert_non_null(strstr(f->error, "No such file or directory"));
}

/* A folder of many: somebody has put links where we may write our part, and gets nothing for it. */
static void npy_write__follows_no_link_of_others(void **state)
{
    struct fixture *f = *state;
    static const unsigned char theirs[] = "theirs";
    unsigned char bytes[FILE_MAX];
    char part[2][2 * PATH_SIZE], path[PATH_SIZE];
    int32_t data[] = {1, 2, 3};
    struct gw_npy array = {.type = GW_NPY_INT32, .dims = 1, .shape = {3}, .count = 3, .data = data};
    strcpy(path, f->path);
    put_file(f, theirs, sizeof(theirs)); /* a file of the victim's at `path` */
    snprintf(f->path, sizeof(f->path), "%s/b.npy", f->folder);
    for (int i = 0; i < 2; i++) {
        snprintf(part[i], sizeof(part[i]), i ? "%s.part%ld.0" : "%s.part%ld", f->path,
                 (long)getpid());
        assert_int_equal(symlink(path, part[i]), 0);
    }
    assert_int_equal(gw_npy_write(f->path, &array, f->error), 0);
    assert_true(get_file(f, bytes) > sizeof(data));
    unlink(f->path);
    for (int i = 0; i < 2; i++)
        unlink(part[i]);
    strcpy(f->path, path);
    assert_int_equal(get_file(f, bytes), sizeof(theirs));
    assert_memory_equal(bytes, theirs, sizeof(theirs));
}

/* A link goes on pointing where it did. */
static void npy_write__follows_a_link(void **state)
{
    struct fixture *f = *state;
    char link[PATH_SIZE];
    struct stat info;
    float number = 2;
    struct gw_npy array = {.count = 1, .data = &number};
    snprintf(link, sizeof(link), "%s/link.npy", f->folder);
    put_file(f, "old", 3);
    assert_int_equal(symlink(f->path, link), 0);
    assert_int_equal(gw_npy_write(link, &array, f->error), 0);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(gw_npy_read(f->path, &f->array, f->error), 0);
    assert_memory_equal(f->array.data, &number, sizeof(number));
}

static void npy_is_alike__says_how_two_differ(void **state)
{
    struct fixture *f = *state;
    const struct gw_npy a = {.dims = 2, .shape = {3, 4}, .count = 12};
    struct gw_npy b = a;
    assert_true(gw_npy_is_alike(&a, &b, f->error));
    b.is_fortran = true;
    assert_false(gw_npy_is_alike(&a, &b, f->error));
    assert_string_equal(f->error, "one is in Fortran order, the other is not");
    b = (struct gw_npy){.dims = 2, .shape = {4, 3}, .count = 12};
    assert_false(gw_npy_is_alike(&a, &b, f->error));
    assert_string_equal(f->error, "shape is (3, 4) against (4, 3)");
    b = (struct gw_npy){.dims = 1, .shape = {12}, .count = 12};
    assert_false(gw_npy_is_alike(&a, &b, f->error));
    assert_string_equal(f->error, "shape is (3, 4) against (12,)");
    b = a;
    b.type = GW_NPY_FLOAT16;
    assert_false(gw_npy_is_alike(&a, &b, f->error));
    assert_string_equal(f->error, "elements are '<f4' against '<f2'");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(npy_read__takes_every_version_type_and_order),
        TEST(npy_read__takes_every_shape),
        TEST(npy_read__says_what_is_wrong_with_a_header),
        TEST(npy_read__limits_dimensions),
        TEST(npy_read__says_what_is_wrong_with_a_file),
        TEST(npy_write__makes_the_bytes_of_numpy),
        TEST(npy_write__is_read_again_as_the_same),
        TEST(npy_write__that_fails_changes_nothing),
        TEST(npy_write__replaces_files_only),
        TEST(npy_try_write__leaves_nothing),
        TEST(npy_write__follows_a_link),
        TEST(npy_write__follows_no_link_of_others),
        TEST(npy_is_alike__says_how_two_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
