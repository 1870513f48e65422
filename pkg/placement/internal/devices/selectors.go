package devices

import (
	"regexp/syntax"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/util/quantities"
)

const (
	// maxVersion bounds the text of a semantic version in a selector.
	maxVersion = 128
	// maxPattern bounds the text of a regular expression, and maxInstructions the program that it
	// becomes: x{1000} is short, and becomes long.
	maxPattern, maxInstructions = 128, 200
	// maxWeight bounds the weight of a selector's syntax tree: a call weighs callWeight, a macro
	// macroWeight, any other node 1. To check types takes memory by the square of the calls.
	maxWeight, callWeight, macroWeight = 1_200, 5, 50
)

// macros of CEL.
var macros = sets.New(operators.All, operators.Exists, operators.ExistsOne, operators.Filter, "existsOne", "bind")

// honest are the functions and macros of CEL whose work is at most what CEL counts as their cost.
// CEL counts after a call has returned, so one call mayn't take long. Others are left out, such as
// map: lists that are put together from themselves, again and again, are compared for ever at the
// cost of a short list.
var honest = sets.New(
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.In,
	operators.Has, operators.All, operators.Exists, operators.ExistsOne, operators.Filter, "existsOne", "bind",
	"int", "uint", "double", "string", "bool", "dyn", "type", "size",
	"startsWith", "endsWith", "contains", "lowerAscii", "upperAscii", "trim", "substring",
	"of", "none", "hasValue", "value", "or", "orValue",
	"add", "sub", "sign", "asInteger", "isInteger", "asApproximateFloat", "compareTo", "isGreaterThan", "isLessThan",
	"major", "minor", "patch",
)

// isBounded reports whether CEL's cost of a stored selector bounds the work of its evaluation, as
// its text tells. It's asked before the selector is compiled, as that expands macros and compiles
// regular expressions.
func isBounded(expression string) bool {
	// without macros, which are calls then
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return false
	}
	tree, errs := p.Parse(common.NewTextSource(expression))
	if len(errs.GetErrors()) > 0 {
		return false
	}
	bounded, weight := true, 0
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		bounded = bounded && isBoundedNode(e)
		weight += weigh(e)
	}))
	return bounded && weight <= maxWeight
}

// weigh a node of the syntax tree, without those below.
func weigh(e ast.Expr) int {
	switch {
	case e.Kind() != ast.CallKind:
		return 1
	case macros.Has(e.AsCall().FunctionName()):
		return macroWeight
	default:
		return callWeight
	}
}

// isValid reports whether a selector is without errors.
func isValid(in *cel.Env, expression string) bool {
	_, issues := in.CompileSource(unquoted{common.NewTextSource(expression)})
	return issues.Err() == nil
}

// unquoted is a text that no error repeats. Each would, up to where it is, character by character.
type unquoted struct{ common.Source }

// Snippet implements common.Source.
func (unquoted) Snippet(int) (text string, found bool) { return "", false }

// isBoundedNode looks at one node of the syntax tree, without those below.
func isBoundedNode(e ast.Expr) bool {
	switch e.Kind() {
	case ast.CallKind:
		return isBoundedCall(e.AsCall())
	case ast.ListKind: // of literals alone: a list of lists that are variables becomes very large
		return !slices.ContainsFunc(e.AsList().Elements(), func(element ast.Expr) bool { return element.Kind() != ast.LiteralKind })
	case ast.IdentKind, ast.LiteralKind, ast.SelectKind:
		return true
	default:
		return false
	}
}

func isBoundedCall(call ast.CallExpr) bool {
	args := call.Args()
	switch name := call.FunctionName(); name {
	case operators.Add: // numbers, as one is: not texts or lists, which grow
		return slices.ContainsFunc(args, isNumber)
	case "quantity", "isQuantity":
		text, literal := textOf(args, 0)
		return literal && !quantities.IsCostly(text)
	case "semver", "isSemver":
		text, literal := textOf(args, 0)
		return literal && len(text) <= maxVersion
	case "matches":
		pattern, literal := textOf(args, len(args)-1)
		return literal && isBoundedPattern(pattern)
	default:
		return honest.Has(name)
	}
}

func isBoundedPattern(pattern string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(parsed.Simplify())
	return err == nil && len(program.Inst) <= maxInstructions
}

// textOf is an argument that is a literal text.
func textOf(args []ast.Expr, index int) (text string, literal bool) {
	if index < 0 || index >= len(args) || args[index].Kind() != ast.LiteralKind {
		return "", false
	}
	value, literal := args[index].AsLiteral().(types.String)
	return string(value), literal
}

func isNumber(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	switch e.AsLiteral().(type) {
	case types.Int, types.Uint, types.Double:
		return true
	default:
		return false
	}
}
