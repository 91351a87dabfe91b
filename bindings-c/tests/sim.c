/* A scenario run from C: sim FILE SEED [KEY=VALUE...] prints the hash, then the summary's JSON. */
#include <string.h>

#include "check.h"

static char text[1 << 20];

int main(int argc, char **argv)
{
    mr_sim_result *result = NULL;
    const char *hash, *json;
    char detail[512];
    CHECK(argc >= 3);
    FILE *file = fopen(argv[1], "rb");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file);
    CHECK(length > 0 && length < sizeof text - 1);
    fclose(file);

    /* What is wrong is told with its place. */
    const char *wrong[] = {"fabric.plains=2"};
    EXPECT(MR_ERROR_SCENARIO, mr_sim_run(text, 1, wrong, 1, &result));
    CHECK(result == NULL);
    CHECK(mr_error_detail(detail, sizeof detail) > 0 && strstr(detail, "plains") != NULL);
    CHECK(mr_error_detail(detail, 4) > 3 && strlen(detail) == 3);
    EXPECT(MR_ERROR_SCENARIO, mr_sim_run("schema = ", 1, NULL, 0, &result));
    EXPECT(MR_ERROR_NULL, mr_sim_run(NULL, 1, NULL, 0, &result));
    EXPECT(MR_ERROR_NULL, mr_sim_run(text, 1, NULL, 1, &result));
    EXPECT(MR_ERROR_NOT_UTF8, mr_sim_run("\xff", 1, NULL, 0, &result));
    EXPECT(MR_ERROR_NULL, mr_sim_hash(NULL, &hash));
    EXPECT(MR_OK, mr_sim_free(NULL));

    int32_t code = mr_sim_run(text, strtoull(argv[2], NULL, 10), (const char *const *)(argv + 3),
                              (size_t)argc - 3, &result);
    if (code != MR_OK) {
        mr_error_detail(detail, sizeof detail);
        printf("%s: %s\n", mr_error_string(code), detail);
        return 1;
    }
    EXPECT(MR_OK, mr_sim_hash(result, &hash));
    EXPECT(MR_OK, mr_sim_json(result, &json));
    printf("%s\n%s\n", hash, json);
    EXPECT(MR_OK, mr_sim_free(result));
    return 0;
}
