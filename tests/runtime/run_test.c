// The training programs as their users run them: commands, files, messages, exit codes, signals.
// RUN_PROGRAMS is the folder of the programs built from support/bigram.c.
#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/support/case.h"

struct result {
    int code;        // Exit code; 128 + signal when a signal ended the process.
    char *out, *err; // Freed by release.
};

static void release(struct result *result) {
    free(result->out);
    free(result->err);
}

static struct result run_shell(const char *command) {
    struct result result;
    char line[1024];
    snprintf(line, sizeof line, "PATH=%s:$PATH; (%s) >out 2>err </dev/null", RUN_PROGRAMS, command);
    const int status = system(line);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = test_read("out", NULL);
    result.err = test_read("err", NULL);
    return result;
}

static void expect_success(const char *command) {
    struct result result = run_shell(command);
    assert_string_equal(result.err, "");
    assert_int_equal(result.code, 0);
    release(&result);
}

static void expect_failure(const char *command, int code, const char *message) {
    struct result result = run_shell(command);
    assert_string_equal(result.err, message);
    assert_int_equal(result.code, code);
    release(&result);
}

// The last "key":number of the JSON lines in `path`.
static double last_of(const char *path, const char *key) {
    char *text = test_read(path, NULL);
    assert_non_null(text);
    char *line = text + strlen(text) - 1;
    while (line > text && line[-1] != '\n') line--;
    json_t *object = json_loads(line, 0, NULL);
    json_t *number = json_object_get(object, key);
    assert_true(json_is_number(number));
    const double value = json_number_value(number);
    json_decref(object);
    free(text);
    return value;
}

static int enter(void **state) {
    if (test_enter_directory(state) != 0) return -1;
    setenv("OMP_NUM_THREADS", "2", 1);
    test_write_text("text", 20000);
    return 0;
}

static void train_save_eval_and_sample_fit_together(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f32 train --data text --steps 200 --log log --save a.st "
                                "--set train.eval_every=100 --set log.loads=50 --sample 20 "
                                "--set train.optimizer.lr=0.03 --prompt 'a f' --temperature 0");
    assert_string_equal(r.err, "");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "data: 19.0k tokens for training, 1.00k for validation (the "
                                  "last 5 % of each file)\n"));
    assert_non_null(strstr(r.out, "\nstep 200/200 | loss "));
    assert_non_null(strstr(r.out, "\nsaved: a.st\na fo"));
    release(&r);
    assert_true(last_of("log", "step") == 200);
    const double loss = last_of("log", "val_loss");
    assert_true(loss < 3);

    char expected[64];
    snprintf(expected, sizeof expected, "validation loss %.6f, ", loss);
    r = run_shell("bigram_f32 eval --data text --load a.st --sequences 40");
    assert_int_equal(r.code, 0);
    assert_memory_equal(r.out, expected, strlen(expected));
    release(&r);

    r = run_shell("bigram_f64 sample --load a.st --prompt 'a f' --tokens 20 --temperature 0");
    assert_int_equal(r.code, 0);
    assert_memory_equal(r.out, "a fo", 4);
    assert_int_equal(strlen(r.out), 24);
    release(&r);
}

// The number in a text, behind `key`.
static int64_t number_behind(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) fail_msg("no %s in %s", key, text);
    return strtoll(at + strlen(key), NULL, 10);
}

static void sources_are_mixed_by_their_shares(void **state) {
    (void)state;
    test_write_text("other", 900);
    struct result r = run_shell(
        "bigram_f32 train --data text=3 --data other=1 --steps 64 --log mixed --checkpoint shares");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "source: text=3 of 19.0k tokens, "));
    release(&r);
    char *log = test_read("mixed", NULL);
    const char *last = strstr(log, "\"step\":64,");
    assert_non_null(last);
    const int64_t text = number_behind(last, "\"text\":"),
                  other = number_behind(last, "\"other\":");
    free(log);
    assert_true(text > 0 && llabs(text - 3 * other) <= (text + other) / 20);
    r = run_shell(
        "bigram_f32 train --data text=2 --data other=1 --steps 70 --checkpoint shares --resume");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "share 1 of data.train was 3 there and is 2 here"));
    release(&r);
    r = run_shell("bigram_f32 train --data text=2 --data other");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "of 'text=2' and 'other' only one has a share"));
    release(&r);
    r = run_shell("bigram_f32 train --data text=x");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "'text=x' is no file, and 'x' no positive share of 'text'"));
    release(&r);
}

static void epochs_set_the_last_step(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f32 train --data text --epochs 2 --log epochs");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "order: shuffle; "));
    assert_non_null(strstr(r.out, " steps read 2"));
    release(&r);
    const double steps = last_of("epochs", "step");
    r = run_shell("bigram_f32 train --data text --epochs 1 --checkpoint ck");
    assert_int_equal(r.code, 0);
    release(&r);
    r = run_shell("bigram_f32 train --data text --epochs 2 --checkpoint ck --resume --log more");
    assert_int_equal(r.code, 0);
    release(&r);
    assert_true(last_of("more", "step") == steps);
}

static void what_is_held_out_is_evaluated_at_the_end(void **state) {
    (void)state;
    expect_success("bigram_f32 train --data text --steps 4 --log log --save end.st");
    char *log = test_read("log", NULL);
    char *first = strstr(log, "\"val_loss\"");
    assert_non_null(first); // Once, of the last step.
    assert_null(strstr(first + 1, "\"val_loss\""));
    free(log);
    char expected[64];
    snprintf(expected, sizeof expected, "validation loss %.6f, ", last_of("log", "val_loss"));
    struct result r = run_shell("bigram_f32 eval --data text --load end.st --sequences 40");
    assert_memory_equal(r.out, expected, strlen(expected));
    release(&r);
    expect_success("bigram_f32 train --data text --steps 4 --log log --set train.eval_steps=0");
    log = test_read("log", NULL);
    assert_null(strstr(log, "\"val_loss\""));
    free(log);
}

static void a_run_that_keeps_nothing_says_so(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f32 train --data text --steps 2");
    const char *said = strstr(r.out, "keeping: nothing (--save FILE keeps");
    assert_non_null(said);
    assert_true(said < strstr(r.out, "step 2/2")); // Before anything is lost.
    release(&r);
    for (int i = 0; i < 2; i++) {
        r = run_shell(i ? "bigram_f32 train --data text --steps 2 --checkpoint kept"
                        : "bigram_f32 train --data text --steps 2 --save kept.st");
        assert_int_equal(r.code, 0);
        assert_null(strstr(r.out, "keeping: nothing"));
        release(&r);
    }
}

static void equal_seeds_give_equal_bits(void **state) {
    (void)state;
    expect_success("bigram_f32 train --data text --steps 9 --save one --threads 1");
    expect_success("bigram_f32 train --data text --steps 9 --save two --threads 2");
    expect_success("bigram_f32 train --data text --steps 9 --save three --seed 2");
    expect_success("cmp one two");
    struct result r = run_shell("cmp one three");
    assert_int_equal(r.code, 1);
    release(&r);
}

static void threads_are_the_users_choice(void **state) {
    (void)state;
    static const char *const runs[][2] = {
        {"bigram_f32 train --data text --steps 1 --threads 3",
         ", 3 threads, fp32\nstep: 64 tokens = 1 x 4 sequences of 16\n"},
        {"bigram_f32 train --data text --steps 1", ", 2 threads, fp32\nstep: "}, // OMP_NUM_THREADS.
        {"HECATE_ISA=portable bigram_f32 train --data text --steps 1",
         "device: cpu (portable), 2 threads, fp32\n"},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct result r = run_shell(runs[i][0]);
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, runs[i][1]));
        release(&r);
    }
}

static void a_router_that_collapses_is_warned_of(void **state) {
    (void)state;
    expect_success(
        "yes a | tr -d '\\n' | head -c 20000 > same"); // Equal tokens choose equal experts.
    struct result r = run_shell("bigram_f32 train --data same --steps 49");
    assert_null(strstr(r.err, "collapsed"));
    release(&r);
    r = run_shell("bigram_f32 train --data same --steps 120");
    assert_int_equal(r.code, 0);
    const char *told = strstr(r.err, ": warning: a router has collapsed: for 50 steps ");
    assert_non_null(told);
    assert_non_null(strstr(told, "100 % of them (load 2.00 of 2) and 1 of 2 experts get none; "));
    assert_null(strstr(told + 40, "collapsed"));
    release(&r);
    r = run_shell("bigram_f32 train --data text --steps 120");
    assert_string_equal(r.err, "");
    release(&r);
}

static void stacks_too_small_are_refused(void **state) {
    (void)state;
    struct result r = run_shell("ulimit -s 400; bigram_f32 train --data text --steps 1");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "KiB of stack, kernels take 1024: raise ulimit -s\n"));
    release(&r);
    r = run_shell("OMP_STACKSIZE=400k bigram_f32 train --data text --steps 1 --threads 2");
    assert_int_equal(r.code, 2);
    assert_non_null(
        strstr(r.err, "a thread has 400 KiB of stack, kernels take 1024: raise OMP_STACKSIZE\n"));
    release(&r);
    expect_success("OMP_STACKSIZE=400k bigram_f32 train --data text --steps 1 --threads 1");
    expect_success("OMP_STACKSIZE=2M bigram_f32 train --data text --steps 1 --threads 2");
}

static void bad_numbers_of_threads_are_refused(void **state) {
    static const char *const bad[] = {"100000", "4097", "0", "-3", "abc", "2x", ",2", " "};
    static const char *const good[] = {"1", " 2 ", "2,1", "2, 1"};
    char command[160];
    (void)state;
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        snprintf(command, sizeof command,
                 "export OMP_NUM_THREADS='%s'; bigram_f32 train --data text --steps 1", bad[i]);
        struct result r = run_shell(command);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, "bigram: error: OMP_NUM_THREADS is '"));
        assert_non_null(strstr(r.err, "'; it takes a number of threads, 1 to 4096\n"));
        release(&r);
    }
    for (int i = 0; i < (int)(sizeof good / sizeof *good); i++) {
        snprintf(command, sizeof command,
                 "export OMP_NUM_THREADS='%s'; bigram_f32 train --data text --steps 1", good[i]);
        expect_success(command);
    }
    // An option of one's own comes first; empty is not set; nothing computes.
    expect_success("OMP_NUM_THREADS=100000 bigram_f32 train --data text --steps 1 --threads 1");
    expect_success("OMP_NUM_THREADS=100000 bigram_f32 info");
    struct result r = run_shell("OMP_NUM_THREADS= bigram_f32 train --data text --steps 1");
    assert_int_equal(r.code, 0);
    release(&r);
    // The rest is OpenMP's: it says what it does not take, and goes on.
    r = run_shell("export OMP_THREAD_LIMIT=x OMP_STACKSIZE=x GOMP_SPINCOUNT=x; "
                  "bigram_f32 train --data text --steps 1");
    assert_int_equal(r.code, 0);
    release(&r);
    r = run_shell("OMP_THREAD_LIMIT=1 bigram_f32 train --data text --steps 1");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, ", 1 thread, "));
    release(&r);
}

static void training_goes_on_from_loaded_parameters(void **state) {
    (void)state;
    expect_success("bigram_f32 train --data text --steps 100 --save a.st --log first "
                   "--set train.optimizer.lr=0.03");
    expect_success("bigram_f32 train --data text --steps 1 --load a.st --log second");
    assert_true(last_of("second", "cross_entropy") < 4.5);
}

static void words_are_printed_as_ids(void **state) {
    (void)state;
    static const uint32_t token[] = {299, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    test_write_llmc("words.bin", (struct test_llmc){20240520, 1, 18, 2, token, 18, 0});
    expect_success("bigram_words train --data words.bin --format llmc --steps 1 --save w.st");
    struct result r = run_shell("bigram_words sample --load w.st --tokens 3 --prompt '299 7'");
    int id[5];
    assert_int_equal(r.code, 0);
    assert_int_equal(sscanf(r.out, "%d %d %d %d %d", &id[0], &id[1], &id[2], &id[3], &id[4]), 5);
    assert_int_equal(id[0], 299);
    assert_int_equal(id[1], 7);
    for (int i = 2; i < 5; i++) assert_in_range(id[i], 0, 299);
    release(&r);
    expect_failure("bigram_words sample --load w.st --prompt '300'", 2,
                   "bigram: error: the prompt needs token ids below 300, not '300'\n");
    expect_failure("bigram_words sample --load w.st --prompt 'the fox'", 2,
                   "bigram: error: the prompt needs token ids below 300, not 'the fox'\n");
    expect_failure("bigram_words sample --load w.st --prompt ' '", 2,
                   "bigram: error: the prompt has no token\n");
}

static void gradients_are_checked(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f64 train --check-grad 20");
    assert_string_equal(r.err, "");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\nsparse.experts.bias "));
    assert_null(strstr(r.out, "rope_table"));
    assert_non_null(strstr(r.out, "\nworst relative error "));
    release(&r);
    r = run_shell("bigram_wrong train --check-grad 20");
    assert_int_equal(r.code, 1);
    assert_memory_equal(r.err, "bigram: error: a gradient of gain is ", 37);
    release(&r);
    expect_failure("bigram_f32 train --check-grad 20", 2,
                   "bigram: error: --check-grad needs a program of double precision: compile with "
                   "--set train.precision=fp64\n");
}

static void info_tells_what_was_compiled(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f32 info --params --set train.steps=33");
    assert_int_equal(r.code, 0);
    static const char *const expected[] = {
        "  parameters     66.8k (66816), 66.3k active per token\n",
        "  experts        sparse: 2 layers, top 1 of 2\n",
        "  AdamW states   522.0 KiB\n",
        "  arena          64.0 KiB\n",
        "  table                                [I=256, V=256]                x1      by adamw",
        "  train.steps = 33    # optimizer steps\n",
        "  parallel.microbatch = 4\n",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_non_null(strstr(r.out, expected[i]));
    release(&r);
}

static void help_and_version_go_to_standard_output(void **state) {
    (void)state;
    struct result r = run_shell("bigram_f32 --help");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\n  sample "));
    release(&r);
    r = run_shell("bigram_f32 train --data text --help");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\n  --check-grad N "));
    release(&r);
    r = run_shell("bigram_f32 --version");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "bigram, compiled by hecatec 0.1.0\n");
    release(&r);
}

static void wrong_use_is_exit_code_2(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"bigram_f32 links",
         "links: one rank has none; compile for several (cluster.nodes, cluster.devices) and "
         "start them with mpirun"},
        {"bigram_f32",
         "a command is missing: train, eval, sample, export, links or info; see bigram --help"},
        {"bigram_f32 train", "no data: give --data FILE"},
        {"bigram_f32 train --val text", "no training data: give --data FILE"},
        {"bigram_f32 eval --data text", "eval needs trained parameters: --load FILE"},
        {"bigram_f32 sample", "sample needs trained parameters: --load FILE"},
        {"bigram_f32 train --data text --set train.tokens=65",
         "train.tokens is 65, which is not a multiple of 64 (positions 16 x microbatch 4 x ranks "
         "1); nearest: 64 or 128"},
        {"bigram_f32 train --data text --threads 0", "--threads is 0; it must be from 1 to 4096"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[256];
        snprintf(message, sizeof message, "bigram: error: %s\n", wrong[i][1]);
        expect_failure(wrong[i][0], 2, message);
    }
}

static void unusable_files_are_exit_code_1_before_training(void **state) {
    (void)state;
    test_write_text("tail", 300); // Its last 5 % are 15 tokens: no sequence.
    static const char *const wrong[][2] = {
        {"bigram_f32 train --data nothing", "cannot open 'nothing': No such file or directory"},
        {"bigram_f32 train --data text --log no/log",
         "cannot write 'no/log': No such file or directory"},
        {"bigram_f32 train --data text --trace no/t.json",
         "cannot write 'no/t.json': No such file or directory"},
        {"bigram_f32 train --data text --save no/a.st",
         "cannot write 'no/a.st': No such file or directory"},
        {"bigram_f32 train --data text --load nothing",
         "cannot open 'nothing': No such file or directory"},
        {"bigram_f32 train --data text --load text",
         "'text' is not a valid safetensors file: its header would be larger than 100 MB"},
        {"bigram_f32 train --data tail --set train.eval_every=1",
         "no validation data for train.eval_every: give --val FILE"},
        {"bigram_f32 train --data text --val tail --format llmc",
         "'text' is not an llm.c data file: its magic number is 1868963937, not 20240520 or "
         "20240801 (plain text needs --format bytes)"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[256];
        snprintf(message, sizeof message, "bigram: error: %s\n", wrong[i][1]);
        struct result r = run_shell(wrong[i][0]);
        assert_string_equal(r.err, message);
        assert_int_equal(r.code, 1);
        assert_null(strstr(r.out, "step "));
        release(&r);
    }
}

static void a_loss_that_is_not_finite_stops_the_run(void **state) {
    (void)state;
    unlink("nan.st");
    expect_failure("bigram_nan train --data text --log log --save nan.st", 1,
                   "bigram: error: step 3: the loss is not finite (nan); training stops\n");
    assert_true(last_of("log", "step") == 2); // Steps before are logged,
    expect_success("bigram_f32 train --data text --steps 1 --load nan.st --strict"); // and saved.
}

// One that is skipped leaves parameters and states as they were.
static void steps_that_are_not_finite_are_skipped(void **state) {
    (void)state;
    const char *const warning =
        "bigram: warning: step 3 is skipped: its loss is not finite (nan)\n";
    struct result r = run_shell("bigram_once train --data text --log log --steps 60 "
                                "--set train.skip_max=1 --save once.st");
    assert_string_equal(r.err, warning);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\n1 steps were skipped\n"));
    release(&r);
    assert_true(last_of("log", "step") == 60);
    assert_true(last_of("log", "loss") < 5.5 && last_of("log", "grad_norm") > 0);
    r = run_shell("grep -c '\"step\":3,\"loss\":null,.*\"skipped\":true' log");
    assert_string_equal(r.out, "1\n");
    release(&r);
    expect_success("bigram_f32 train --data text --steps 1 --load once.st --strict");
    r = run_shell("bigram_nan train --data text --log log --set train.skip_max=2");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "bigram: error: step 5: the loss is not finite (nan)"));
    release(&r);
    assert_true(last_of("log", "step") == 4);
}

// The steps of the trace in `path`, which must be valid JSON.
static int steps_of_trace(const char *path) {
    json_t *root = json_load_file(path, 0, NULL), *events = json_object_get(root, "traceEvents");
    assert_true(json_is_array(events));
    int steps = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        steps += strncmp(json_string_value(json_object_get(event, "name")), "step ", 5) == 0;
    }
    json_decref(root);
    return steps;
}

static void a_profile_changes_no_bit(void **state) {
    (void)state;
    expect_success("bigram_f32 train --data text --steps 9 --save plain");
    struct result r = run_shell("bigram_f32 train --data text --steps 9 --save profiled --profile "
                                "--trace t.json --set train.eval_every=4");
    assert_string_equal(r.err, "");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\nprofile of steps 2 to 9 (the first is left out): 64 tokens "));
    assert_non_null(strstr(r.out, "\n  adamw  (count) "));
    assert_non_null(strstr(r.out, "\ntrace: steps 1 to 9, "));
    release(&r);
    expect_success("cmp plain profiled");
    assert_int_equal(steps_of_trace("t.json"), 9);

    r = run_shell("bigram_nan train --data text --trace t.json"); // Ends in its third step.
    assert_int_equal(r.code, 1);
    release(&r);
    assert_int_equal(steps_of_trace("t.json"), 2);
}

static void a_full_disk_ends_no_run(void **state) {
    (void)state;
    static const char *const watching[] = {"--trace", "--log"};
    for (int i = 0; i < 2; i++) {
        char command[128];
        unlink("full.st");
        snprintf(command, sizeof command,
                 "bigram_f32 train --data text --steps 3 --save full.st %s /dev/full", watching[i]);
        expect_failure(
            command, 0,
            "bigram: warning: cannot write '/dev/full': No space left on device; the run "
            "goes on without it\n");
        assert_int_equal(access("full.st", F_OK), 0);
    }
    expect_failure("bigram_f32 train --data text --steps 3 --save full.st >/dev/full", 0,
                   "bigram: warning: cannot write to standard output: No space left on device; the "
                   "run goes on without it\n");
    struct result r = run_shell("bigram_f32 info >/dev/full");
    assert_string_equal(r.err, "bigram: error: cannot write to standard output: No space left on "
                               "device\n");
    assert_int_equal(r.code, 1);
    release(&r);
}

// Starts a run without end, sends `number` once it has logged a step, and looks at what it leaves.
static void expect_stop(int number, int code, const char *name) {
    unlink("log");
    unlink("stopped.st");
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("out", "w", stdout)) _exit(99);
        execl(RUN_PROGRAMS "/bigram_f32", "bigram_f32", "train", "--data", "text", "--steps",
              "1000000000", "--log", "log", "--save", "stopped.st", NULL);
        _exit(99);
    }
    struct stat status;
    while (stat("log", &status) != 0 || status.st_size == 0) usleep(1000);
    kill(child, number);
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), code);

    char expected[64];
    char *out = test_read("out", NULL);
    snprintf(expected, sizeof expected, "\nstopped by %s after step %.0f\n", name,
             last_of("log", "step"));
    assert_non_null(strstr(out, expected));
    free(out);
    assert_int_equal(access("stopped.st", F_OK), 0);
}

static void signals_finish_the_step_and_save(void **state) {
    (void)state;
    expect_stop(SIGINT, 130, "SIGINT");
    expect_stop(SIGTERM, 143, "SIGTERM");
    expect_stop(SIGHUP, 129, "SIGHUP");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_save_eval_and_sample_fit_together),
        cmocka_unit_test(sources_are_mixed_by_their_shares),
        cmocka_unit_test(epochs_set_the_last_step),
        cmocka_unit_test(what_is_held_out_is_evaluated_at_the_end),
        cmocka_unit_test(a_run_that_keeps_nothing_says_so),
        cmocka_unit_test(equal_seeds_give_equal_bits),
        cmocka_unit_test(threads_are_the_users_choice),
        cmocka_unit_test(bad_numbers_of_threads_are_refused),
        cmocka_unit_test(a_router_that_collapses_is_warned_of),
        cmocka_unit_test(stacks_too_small_are_refused),
        cmocka_unit_test(training_goes_on_from_loaded_parameters),
        cmocka_unit_test(words_are_printed_as_ids),
        cmocka_unit_test(gradients_are_checked),
        cmocka_unit_test(info_tells_what_was_compiled),
        cmocka_unit_test(help_and_version_go_to_standard_output),
        cmocka_unit_test(wrong_use_is_exit_code_2),
        cmocka_unit_test(unusable_files_are_exit_code_1_before_training),
        cmocka_unit_test(a_loss_that_is_not_finite_stops_the_run),
        cmocka_unit_test(steps_that_are_not_finite_are_skipped),
        cmocka_unit_test(a_profile_changes_no_bit),
        cmocka_unit_test(a_full_disk_ends_no_run),
        cmocka_unit_test(signals_finish_the_step_and_save),
    };
    return cmocka_run_group_tests(tests, enter, test_leave_directory);
}
