/* Grammar of the language. Conflict-free; errors recover at three levels, so that one mistake is one
   complaint: at the `;` of a statement, at the `}` of a body, at the body of a broken header. */
%require "3.8"
%define api.pure full
%define api.prefix {hec_parse_}
%define api.token.prefix {HEC_T_}
%define api.location.type {struct hec_span}
%define api.value.type union
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {struct hec_parser *parser}

%code requires {
#include "lang/scan.h"

struct hec_parser {
    struct hec_scan scan;
    struct hec_tree *tree;
    struct hec_expr *expression; // The result of a start at START_EXPRESSION.
    int start;                   // Token that says what to parse, until it was handed out.
};
}

%code provides {
int hec_parse_lex(HEC_PARSE_STYPE *value, struct hec_span *at, struct hec_parser *parser);
void hec_parse_error(struct hec_span *at, struct hec_parser *parser, const char *message);
}

%code {
#define YYMAXDEPTH 4000 /* Nested deeper, no person wrote it. */
#include "lang/parse_make.h"

#define YYLLOC_DEFAULT(current, rhs, count)                                                        \
    ((current) = (count) ? hec_span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, count))                   \
                         : hec_span_after(YYRHSLOC(rhs, 0)))
#define ARENA parser->scan.arena
#define ADD(vec, ...) HEC_PUSH(ARENA, &(vec), __VA_ARGS__)
}

%token DIM "`dim`" LET "`let`" IMPORT "`import`" BLOCK "`block`" MOE "`moe`" MODEL "`model`"
%token PARAM "`param`" LOSS "`loss`" REPEAT "`repeat`" IF "`if`" ELSE "`else`" RETURN "`return`"
%token TRUE "`true`" FALSE "`false`" AND "`and`" OR "`or`" NOT "`not`"
%token ARROW "`->`" RANGE "`..`" EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`"
%token <const char *> NAME "a name" STRING "a string"
%token <struct hec_token> NUMBER "a number"
%token START_FILE START_EXPRESSION

%type <struct hec_definitions> definitions
%type <struct hec_definition> definition
%type <struct hec_variables> variables params
%type <struct hec_variable> variable param
%type <struct hec_declaration> signature
%type <struct hec_arguments> shape expressions arguments argument_list list options
%type <struct hec_argument> argument
%type <struct hec_stmts> code statements else
%type <struct hec_stmt> statement
%type <struct hec_sets> settings sets
%type <struct hec_set> set label
%type <struct hec_expr *> expression postfix

%left OR
%left AND
%precedence NOT
%nonassoc EQ NE LE GE '<' '>'
%nonassoc RANGE
%left '+' '-'
%left '*' '/' '%' '@'
%precedence NEGATIVE

%%
start
    : START_FILE file
    | START_EXPRESSION expression ';' { parser->expression = $expression; }
    ;

file
    : %empty
    | file declaration
    ;

declaration
    : DIM definitions ';' { hec_make_definitions(parser, HEC_ITEM_DIM, @$, $definitions); }
    | LET definitions ';' { hec_make_definitions(parser, HEC_ITEM_LET, @$, $definitions); }
    | IMPORT STRING ';' { hec_make_import(parser, @STRING, $STRING); }
    | BLOCK NAME signature code { hec_make_code(parser, HEC_ITEM_BLOCK, $NAME, @NAME, &$signature, $code); }
    | BLOCK error code { yyerrok; }
    | MODEL NAME signature code { hec_make_code(parser, HEC_ITEM_MODEL, $NAME, @NAME, &$signature, $code); }
    | MODEL error code { yyerrok; }
    | MOE NAME signature settings { hec_make_moe(parser, $NAME, @NAME, &$signature, $settings); }
    | MOE error settings { yyerrok; }
    | NAME label settings { hec_make_section(parser, hec_set_section($NAME, @NAME, $label, $settings)); }
    | error ';' { yyerrok; }
    | error '}' { yyerrok; }
    | ';'
    ;

definitions
    : definition { $$ = (struct hec_definitions){0}; ADD($$, $definition); }
    | definitions[before] ',' definition { $$ = $before; ADD($$, $definition); }
    ;

definition
    : NAME '=' expression { $$ = (struct hec_definition){$NAME, @NAME, $expression}; }
    ;

signature
    : '(' variables ')' ARROW shape {
        $$ = (struct hec_declaration){.arguments = $variables, .result = $shape, .result_at = @shape};
    }
    ;

variables
    : variable { $$ = (struct hec_variables){0}; ADD($$, $variable); }
    | variables[before] ',' variable { $$ = $before; ADD($$, $variable); }
    ;

variable
    : NAME shape { $$ = (struct hec_variable){$NAME, @NAME, $shape, @shape, {0}}; }
    ;

shape
    : '[' ']' { $$ = (struct hec_arguments){0}; }
    | '[' expressions ']' { $$ = $expressions; }
    ;

code
    : '{' statements '}' { $$ = $statements; }
    | '{' statements error '}' { $$ = $statements; yyerrok; }
    ;

statements
    : %empty { $$ = (struct hec_stmts){0}; }
    | statements[before] statement { $$ = $before; ADD($$, $statement); }
    | statements[before] error ';' { $$ = $before; yyerrok; }
    | statements[before] ';' { $$ = $before; }
    ;

statement
    : PARAM params ';' { $$ = (struct hec_stmt){.kind = HEC_STMT_PARAM, .at = @$, .params = $params}; }
    | NAME '=' expression ';' { $$ = hec_stmt_named(HEC_STMT_ASSIGN, @$, $NAME, @NAME, $expression); }
    | LOSS NAME options '=' expression ';' {
        $$ = hec_stmt_named(HEC_STMT_LOSS, @LOSS, $NAME, @NAME, $expression);
        $$.options = $options;
    }
    | RETURN expression ';' {
        $$ = (struct hec_stmt){.kind = HEC_STMT_RETURN, .at = @$, .value = $expression};
    }
    | REPEAT NAME '<' expression code {
        $$ = hec_stmt_named(HEC_STMT_REPEAT, @REPEAT, $NAME, @NAME, $expression);
        $$.body = $code;
    }
    | REPEAT error code {
        $$ = (struct hec_stmt){.kind = HEC_STMT_IF, .at = @REPEAT, .body = $code};
        yyerrok;
    }
    | IF expression code else { $$ = hec_stmt_if(@IF, $expression, $code, $else); }
    | IF error code else {
        $$ = (struct hec_stmt){.kind = HEC_STMT_IF, .at = @IF, .body = $code, .otherwise = $else};
        yyerrok;
    }
    ;

else
    : %empty { $$ = (struct hec_stmts){0}; }
    | ELSE code { $$ = $code; }
    | ELSE IF expression code else[rest] {
        $$ = (struct hec_stmts){0};
        ADD($$, hec_stmt_if(@IF, $expression, $code, $rest));
    }
    ;

params
    : param { $$ = (struct hec_variables){0}; ADD($$, $param); }
    | params[before] ',' param { $$ = $before; ADD($$, $param); }
    ;

param
    : variable
    | variable '(' arguments ')' { $$ = $variable; $$.options = $arguments; }
    ;

options
    : %empty { $$ = (struct hec_arguments){0}; }
    | '(' arguments ')' { $$ = $arguments; }
    ;

settings
    : '{' sets '}' { $$ = $sets; }
    | '{' sets error '}' { $$ = $sets; yyerrok; }
    ;

sets
    : %empty { $$ = (struct hec_sets){0}; }
    | sets[before] set { $$ = $before; ADD($$, $set); }
    | sets[before] error ';' { $$ = $before; yyerrok; }
    | sets[before] ';' { $$ = $before; }
    ;

set
    : NAME '=' expression separator {
        $$ = (struct hec_set){.kind = HEC_SET_VALUE, .name = $NAME, .at = @NAME, .value = $expression};
    }
    | NAME label settings { $$ = hec_set_section($NAME, @NAME, $label, $settings); }
    ;

separator
    : ';'
    | ','
    ;

label
    : %empty { $$ = (struct hec_set){0}; }
    | NAME { $$ = (struct hec_set){.label = $NAME, .label_at = @NAME}; }
    | STRING { $$ = (struct hec_set){.label = $STRING, .label_at = @STRING, .label_quoted = true}; }
    ;

expressions
    : expression { $$ = (struct hec_arguments){0}; ADD($$, (struct hec_argument){NULL, @expression, $expression}); }
    | expressions[before] ',' expression {
        $$ = $before;
        ADD($$, (struct hec_argument){NULL, @expression, $expression});
    }
    ;

arguments
    : %empty { $$ = (struct hec_arguments){0}; }
    | argument_list optional_comma { $$ = $argument_list; }
    ;

argument_list
    : argument { $$ = (struct hec_arguments){0}; ADD($$, $argument); }
    | argument_list[before] ',' argument { $$ = $before; ADD($$, $argument); }
    ;

optional_comma
    : %empty
    | ','
    ;

argument
    : expression { $$ = (struct hec_argument){NULL, @expression, $expression}; }
    | NAME '=' expression { $$ = (struct hec_argument){$NAME, @NAME, $expression}; }
    ;

list
    : '[' ']' { $$ = (struct hec_arguments){0}; }
    | '[' expressions optional_comma ']' { $$ = $expressions; }
    ;

expression
    : expression[l] OR expression[r] { $$ = hec_make_binary(parser, HEC_OP_OR, $l, $r, @OR); }
    | expression[l] AND expression[r] { $$ = hec_make_binary(parser, HEC_OP_AND, $l, $r, @AND); }
    | NOT expression[r] { $$ = hec_make_unary(parser, HEC_OP_NOT, $r, @NOT); }
    | expression[l] EQ expression[r] { $$ = hec_make_binary(parser, HEC_OP_EQ, $l, $r, @EQ); }
    | expression[l] NE expression[r] { $$ = hec_make_binary(parser, HEC_OP_NE, $l, $r, @NE); }
    | expression[l] '<' expression[r] { $$ = hec_make_binary(parser, HEC_OP_LT, $l, $r, @2); }
    | expression[l] LE expression[r] { $$ = hec_make_binary(parser, HEC_OP_LE, $l, $r, @LE); }
    | expression[l] '>' expression[r] { $$ = hec_make_binary(parser, HEC_OP_GT, $l, $r, @2); }
    | expression[l] GE expression[r] { $$ = hec_make_binary(parser, HEC_OP_GE, $l, $r, @GE); }
    | expression[l] RANGE expression[r] { $$ = hec_make_binary(parser, HEC_OP_RANGE, $l, $r, @RANGE); }
    | expression[l] '+' expression[r] { $$ = hec_make_binary(parser, HEC_OP_ADD, $l, $r, @2); }
    | expression[l] '-' expression[r] { $$ = hec_make_binary(parser, HEC_OP_SUB, $l, $r, @2); }
    | expression[l] '*' expression[r] { $$ = hec_make_binary(parser, HEC_OP_MUL, $l, $r, @2); }
    | expression[l] '/' expression[r] { $$ = hec_make_binary(parser, HEC_OP_DIV, $l, $r, @2); }
    | expression[l] '%' expression[r] { $$ = hec_make_binary(parser, HEC_OP_MOD, $l, $r, @2); }
    | expression[l] '@' expression[r] { $$ = hec_make_binary(parser, HEC_OP_CONTRACT, $l, $r, @2); }
    | '-' expression[r] %prec NEGATIVE { $$ = hec_make_unary(parser, HEC_OP_NEG, $r, @1); }
    | postfix
    ;

postfix
    : NAME { $$ = hec_make_text(parser, HEC_EXPR_NAME, @$, $NAME); }
    | NUMBER { $$ = hec_make_number(parser, @$, &$NUMBER); }
    | STRING { $$ = hec_make_text(parser, HEC_EXPR_STRING, @$, $STRING); }
    | TRUE { $$ = hec_make_bool(parser, @$, true); }
    | FALSE { $$ = hec_make_bool(parser, @$, false); }
    | '(' expression[inner] ')' { $$ = hec_make_parenthesized($inner, @$); }
    | list { $$ = hec_make_list(parser, @$, $list); }
    | NAME '(' arguments ')' { $$ = hec_make_call(parser, @$, $NAME, @NAME, $arguments); }
    | NAME[label] ':' NAME[callee] '(' arguments ')' {
        $$ = hec_make_call(parser, @$, $callee, @callee, $arguments);
        $$->label = $label;
        $$->label_at = @label;
    }
    | postfix[base] '[' expressions ']' { $$ = hec_make_index(parser, @$, $base, $expressions); }
    | postfix[base] '.' NAME { $$ = hec_make_field(parser, @$, $base, $NAME, @NAME); }
    ;
%%

int hec_parse_lex(HEC_PARSE_STYPE *value, struct hec_span *at, struct hec_parser *parser) {
    if (parser->start) {
        const int start = parser->start;
        parser->start = 0;
        *at = (struct hec_span){parser->scan.source, 1, parser->scan.column, 0};
        return start;
    }
    const struct hec_token token = hec_scan_token(&parser->scan);
    *at = token.at;
    if (token.kind == HEC_T_NUMBER) value->HEC_T_NUMBER = token;
    if (token.kind == HEC_T_NAME) value->HEC_T_NAME = token.text;
    if (token.kind == HEC_T_STRING) value->HEC_T_STRING = token.text;
    return token.kind;
}

/* Called by the parser for syntax errors; the grammar knows what it expects, syntax_error.c says it. */
static int yyreport_syntax_error(const yypcontext_t *context, struct hec_parser *parser) {
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    const int count = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < count; i++) names[i] = yysymbol_name(kinds[i]);
    hec_syntax_error(parser, names, count);
    return 0;
}

/* Called only when the parser's stack is exhausted. */
void hec_parse_error(struct hec_span *at, struct hec_parser *parser, const char *message) {
    (void)message;
    hec_diag_report(parser->scan.diag, HEC_ERROR, *at, "this is nested too deeply");
}
