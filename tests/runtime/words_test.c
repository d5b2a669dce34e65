// Unit test of runtime/sample/words: text through tokenizers, bytes, ids, and the end of a text.
#include "runtime/sample/words.h"

#include <unistd.h>

#include "tests/runtime/support/case.h"

static struct hrt_words open_words(int64_t vocabulary, const char *tokenizer) {
    struct hrt_error error = {0};
    struct hrt_words words;
    assert_true(hrt_sample_words_open(&words, vocabulary, tokenizer, &error));
    return words;
}

// A prompt becomes tokens, and these the text again, behind what marks its begin.
static void expect_text(const char *tokenizer, const char *text, int marks) {
    struct hrt_error error = {0};
    struct hrt_words words = open_words(1000, tokenizer);
    struct hrt_ids ids = {0};
    char read[256];
    size_t bytes = 0;
    int special = 0;
    assert_true(hrt_sample_words_are_text(&words));
    assert_true(hrt_sample_words_read(&words, text, &ids, &error));
    for (size_t i = 0; i < ids.count; i++) {
        const struct hrt_piece piece = hrt_sample_words_write(&words, ids.at[i], bytes == 0);
        special += piece.special;
        if (piece.special) continue;
        memcpy(read + bytes, piece.text, piece.bytes);
        bytes += piece.bytes;
    }
    read[bytes] = '\0';
    assert_string_equal(read, text);
    assert_int_equal(special, marks);
    free(ids.at);
    hrt_sample_words_close(&words);
}

static void text_goes_through_tokenizers(void **state) {
    (void)state;
    static const char text[] = " Once upon a time, \xc3\xbc \xe4\xbd\xa0 12 of them.\n";
    expect_text(TOKENIZERS "/gpt2.json", text, 0);
    expect_text(TOKENIZERS "/qwen.json", text + 1, 0);
    expect_text(TOKENIZERS "/llama3.json", text + 1, 1);
    expect_text(TOKENIZERS "/mixtral.json", text + 1, 1);
}

static void expect_ids(struct hrt_words *words, const char *prompt, const int32_t *ids,
                       size_t count) {
    struct hrt_error error = {0};
    struct hrt_ids read = {0};
    assert_true(hrt_sample_words_read(words, prompt, &read, &error));
    assert_int_equal(read.count, count);
    assert_memory_equal(read.at, ids, count * sizeof *ids);
    free(read.at);
}

static void without_a_tokenizer_tokens_are_bytes_or_ids(void **state) {
    (void)state;
    struct hrt_words bytes = open_words(256, NULL), ids = open_words(300, NULL);
    assert_true(hrt_sample_words_are_text(&bytes));
    assert_false(hrt_sample_words_are_text(&ids));
    expect_ids(&bytes, "a\xff", (int32_t[]){'a', 255}, 2);
    expect_ids(&bytes, NULL, (int32_t[]){'\n'}, 1);
    expect_ids(&ids, " 1,299\t0", (int32_t[]){1, 299, 0}, 3);
    expect_ids(&ids, NULL, (int32_t[]){0}, 1);
    assert_string_equal(hrt_sample_words_write(&ids, 299, true).text, "299 ");
    assert_int_equal(hrt_sample_words_write(&bytes, 255, true).text[0], (char)255);
}

static void expect_refused(struct hrt_words *words, const char *prompt, enum hrt_exit code,
                           const char *text) {
    struct hrt_error error = {0};
    struct hrt_ids ids = {0};
    test_expect_error(hrt_sample_words_read(words, prompt, &ids, &error), &error, code, text);
    free(ids.at);
}

static void what_is_no_token_is_refused(void **state) {
    (void)state;
    struct hrt_words ids = open_words(300, NULL), bytes = open_words(256, NULL);
    struct hrt_words few = open_words(100, TOKENIZERS "/gpt2.json");
    expect_refused(&ids, "1 300", HRT_EXIT_USAGE,
                   "the prompt needs token ids below 300, not '300'");
    expect_refused(&ids, "1 x", HRT_EXIT_USAGE, "the prompt needs token ids below 300, not 'x'");
    expect_refused(&ids, " ", HRT_EXIT_USAGE, "the prompt has no token");
    expect_refused(&bytes, "", HRT_EXIT_USAGE, "the prompt has no token");
    expect_refused(&few, "the of and", HRT_EXIT_FAILED,
                   "the tokenizer is of another model: token 270 of the prompt is not below the "
                   "vocabulary of 100");
    hrt_sample_words_close(&few);
}

static void copy_tokenizer(void) {
    size_t bytes;
    char *text = test_read(TOKENIZERS "/gpt2.json", &bytes);
    test_write("tokenizer.json", text, bytes);
    free(text);
}

static void write_config(const char *name, const char *text) {
    test_write(name, text, strlen(text));
}

static void the_folder_says_what_ends_a_text(void **state) {
    (void)state;
    copy_tokenizer();
    write_config("config.json", "{\"eos_token_id\": 5}");
    struct hrt_words words = open_words(700, "tokenizer.json");
    assert_true(hrt_sample_words_end(&words, 5));
    expect_ids(&words, NULL, (int32_t[]){5}, 1); // The token that ends texts.
    hrt_sample_words_close(&words);
    write_config("generation_config.json", "{\"eos_token_id\": [7, 9]}");
    words = open_words(700, "./tokenizer.json");
    assert_true(hrt_sample_words_end(&words, 7) && hrt_sample_words_end(&words, 9) &&
                !hrt_sample_words_end(&words, 5));
    hrt_sample_words_close(&words);
    write_config("generation_config.json", "{}");
    words = open_words(700, "tokenizer.json");
    assert_true(hrt_sample_words_end(&words, 5));
    hrt_sample_words_close(&words);
    unlink("generation_config.json");
    write_config("config.json", "{\"eos_token_id\": null}");
    words = open_words(700, "tokenizer.json");
    assert_int_equal(words.ends.count, 0);
    hrt_sample_words_close(&words);
}

static void expect_no_words(const char *tokenizer, const char *text) {
    struct hrt_error error = {0};
    struct hrt_words words;
    test_expect_error(hrt_sample_words_open(&words, 700, tokenizer, &error), &error,
                      HRT_EXIT_FAILED, text);
    hrt_sample_words_close(&words);
}

static void a_folder_that_is_wrong_is_refused(void **state) {
    (void)state;
    static const char no_id[] = "'config.json': eos_token_id is no id below the vocabulary of 700";
    copy_tokenizer();
    unlink("generation_config.json");
    static const char *const wrong[] = {"{\"eos_token_id\": 700}", "{\"eos_token_id\": -1}",
                                        "{\"eos_token_id\": \"x\"}",
                                        "{\"eos_token_id\": [1, null]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_config("config.json", wrong[i]);
        expect_no_words("tokenizer.json", no_id);
    }
    write_config("config.json", "{\"a\":\n");
    expect_no_words("tokenizer.json",
                    "'config.json' is not JSON: line 2: unexpected token near end of file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_goes_through_tokenizers),
        cmocka_unit_test(without_a_tokenizer_tokens_are_bytes_or_ids),
        cmocka_unit_test(what_is_no_token_is_refused),
        cmocka_unit_test(the_folder_says_what_ends_a_text),
        cmocka_unit_test(a_folder_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
