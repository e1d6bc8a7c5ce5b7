/* .npy files: what is read, what is written, and the line about each that cannot be. */
#include "support.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/npy.h"

enum {
    FILE_MAX = 4096,
};

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/gradwire-npy-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* A file of format `major`.0 with this header text, padded as NumPy pads it, and this data. */
static size_t make_file(unsigned char *bytes, int major, const char *header, const void *data,
                        size_t size)
{
    size_t field = major == 1 ? 2 : 4, begin = 8 + field;
    size_t length = (begin + strlen(header) + 1 + 63) / 64 * 64 - begin;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)major;
    bytes[7] = 0;
    for (size_t i = 0; i < field; i++)
        bytes[8 + i] = (unsigned char)(length >> 8 * i);
    memset(bytes + begin, ' ', length);
    memcpy(bytes + begin, header, strlen(header));
    bytes[begin + length - 1] = '\n';
    if (size)
        memcpy(bytes + begin + length, data, size);
    return begin + length + size;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void npy_read__takes_all_versions_types_and_shapes(void **state)
{
    (void)state;
    static const float data[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        int major;
        const char *header;
        enum gw_npy_type type;
        bool is_fortran;
        uint32_t dims;
        uint64_t shape[2];
        uint64_t count;
    } cases[] = {
        {1,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
         GW_NPY_FLOAT32,
         false,
         2,
         {2, 3},
         6},
        {2,
         "{'shape': (6,), 'fortran_order': True, 'descr': '<i4'}",
         GW_NPY_INT32,
         true,
         1,
         {6, 0},
         6},
        {3,
         "{\"descr\":\"<f2\",\"fortran_order\":False,\"shape\":(3,4)}",
         GW_NPY_FLOAT16,
         false,
         2,
         {3, 4},
         12},
        {1,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
         GW_NPY_FLOAT32,
         false,
         0,
         {0, 0},
         1},
        {1,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }",
         GW_NPY_FLOAT32,
         false,
         2,
         {0, 7},
         0},
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        unsigned char bytes[FILE_MAX];
        char error[GW_NPY_ERROR_MAX] = "";
        struct gw_npy array;
        size_t size = make_file(bytes, cases[i].major, cases[i].header, data,
                                cases[i].count * gw_npy_element(cases[i].type));
        write_file(path_of("a.npy"), bytes, size);
        assert_int_equal(gw_npy_read(path_of("a.npy"), &array, error), 0);
        assert_int_equal(array.type, cases[i].type);
        assert_int_equal(array.is_fortran, cases[i].is_fortran);
        assert_int_equal(array.dims, cases[i].dims);
        for (uint32_t k = 0; k < array.dims; k++)
            assert_int_equal(array.shape[k], cases[i].shape[k]);
        assert_int_equal(array.count, cases[i].count);
        assert_memory_equal(array.data, data, array.count * gw_npy_element(array.type));
        gw_npy_free(&array);
    }
    unlink(path_of("a.npy"));
}

static void npy_read__says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *said;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8, "<f8"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, ">f4"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "structured"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", 4, "fortran_order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4, "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 5, "1 bytes behind"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", 4, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", 4,
         "larger"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", 4,
         "truncated"},
        {"{'descr': '<f4', 'shape': (1,), }", 4, "descr, fortran_order and shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, "'x'"},
        {"[1, 2]", 4, "dictionary"},
    };
    unsigned char bytes[FILE_MAX], zeros[16] = {0};
    char error[GW_NPY_ERROR_MAX];
    struct gw_npy array;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        size_t size = make_file(bytes, 1, cases[i].header, zeros, cases[i].data);
        write_file(path_of("bad.npy"), bytes, size);
        assert_int_equal(gw_npy_read(path_of("bad.npy"), &array, error), -1);
        print_message("%s\n", error);
        assert_non_null(strstr(error, cases[i].said));
        assert_non_null(strstr(error, "bad.npy"));
    }
    write_file(path_of("bad.npy"), "hello", 5);
    assert_int_equal(gw_npy_read(path_of("bad.npy"), &array, error), -1);
    assert_non_null(strstr(error, "not an .npy file"));
    unlink(path_of("bad.npy"));
    assert_int_equal(gw_npy_read(path_of("absent.npy"), &array, error), -1);
    assert_non_null(strstr(error, "absent.npy"));
    assert_int_equal(gw_npy_read(folder, &array, error), -1);
    assert_non_null(strstr(error, "not a file"));
}

/* Every beginning of a good header is refused, and no change of one byte does harm. */
static void npy_parse__takes_nothing_for_granted(void **state)
{
    (void)state;
    unsigned char bytes[FILE_MAX];
    char error[GW_NPY_ERROR_MAX];
    struct gw_npy array;
    size_t begin,
        size = make_file(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                         NULL, 0);
    assert_int_equal(gw_npy_parse(bytes, size, &array, &begin, error), 0);
    assert_int_equal(begin, size);
    for (size_t i = 0; i < size; i++) {
        unsigned char *copy = malloc(i ? i : 1); /* its own memory, for the sanitizers */
        assert_non_null(copy);
        memcpy(copy, bytes, i);
        assert_int_equal(gw_npy_parse(copy, i, &array, &begin, error), -1);
        free(copy);
    }
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            unsigned char *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, bytes, size);
            copy[i] ^= (unsigned char)(1 << bit);
            if (gw_npy_parse(copy, size, &array, &begin, error) == 0)
                assert_true(array.dims <= GW_NPY_DIMS_MAX && begin <= size);
            free(copy);
        }
}

static void npy_write__is_read_back(void **state)
{
    (void)state;
    int32_t data[] = {1, -2, 3, -4, 5, -6};
    struct gw_npy array = {.type = GW_NPY_INT32,
                           .is_fortran = true,
                           .dims = 2,
                           .shape = {3, 2},
                           .count = 6,
                           .data = data},
                  back;
    char error[GW_NPY_ERROR_MAX];
    assert_int_equal(gw_npy_write(path_of("out.npy"), &array, error), 0);
    assert_int_equal(gw_npy_read(path_of("out.npy"), &back, error), 0);
    assert_true(gw_npy_is_alike(&array, &back, error));
    assert_memory_equal(back.data, data, sizeof(data));
    back.is_fortran = false;
    assert_false(gw_npy_is_alike(&array, &back, error));
    assert_non_null(strstr(error, "Fortran"));
    back.shape[1] = 3;
    assert_false(gw_npy_is_alike(&array, &back, error));
    assert_non_null(strstr(error, "(3, 2) against (3, 3)"));
    back.type = GW_NPY_FLOAT32;
    assert_false(gw_npy_is_alike(&array, &back, error));
    assert_non_null(strstr(error, "'<i4' against '<f4'"));
    gw_npy_free(&back);
    unlink(path_of("out.npy"));
    /* What cannot be written leaves nothing behind. */
    assert_int_equal(gw_npy_write("/nonexistent/out.npy", &array, error), -1);
    assert_non_null(strstr(error, "/nonexistent/out.npy"));
    assert_int_equal(mkdir(path_of("out.npy"), 0700), 0);
    assert_int_equal(gw_npy_write(path_of("out.npy"), &array, error), -1);
    assert_int_equal(rmdir(path_of("out.npy")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_read__takes_all_versions_types_and_shapes),
        cmocka_unit_test(npy_read__says_what_is_wrong),
        cmocka_unit_test(npy_parse__takes_nothing_for_granted),
        cmocka_unit_test(npy_write__is_read_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
