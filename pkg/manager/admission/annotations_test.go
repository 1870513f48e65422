package admission

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// annotations are those that names.go of the API declares under a heading.
func annotations(t *testing.T, heading string) (keys []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "names.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		block, is := declaration.(*ast.GenDecl)
		if !is || strings.TrimSpace(block.Doc.Text()) != heading {
			continue
		}
		for _, spec := range block.Specs {
			constant := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(constant.Names[0].Name, "Annotation") {
				continue
			}
			key, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		t.Fatalf("names.go has no annotations under %q", heading)
	}
	return keys
}

// Users may set the annotations that names.go has for them, and docs/how-to/submit.md explains
// them.
func TestAnnotationsOfUsers(t *testing.T) {
	p, docs := loadPolicy(t, "jobs-policy.yaml"), readFile(t, "docs", "how-to", "submit.md")
	for _, key := range annotations(t, "Names on hub Jobs that users set.") {
		for _, message := range p.denied(request{object: newJob(v1alpha1.ManagedByDispatcher, key, "?!")}) {
			if strings.Contains(message, "only Jobferry") {
				t.Errorf("%s: denied %q", key, message)
			}
		}
		if !strings.Contains(docs, "`"+key+"`") {
			t.Errorf("docs/how-to/submit.md doesn't explain %s", key)
		}
	}
}

// Other annotations of Jobferry's are told to mean nothing.
func TestOtherAnnotationsMeanNothing(t *testing.T) {
	p := loadPolicy(t, "warnings-policy.yaml")
	for _, key := range append(annotations(t, "Names on mirrors."), v1alpha1.AnnotationCluster, "jobferry.dev/what-comes-next") {
		if got := p.denied(request{object: newJob(v1alpha1.ManagedByDispatcher, key, "x")}); len(got) != 1 || !strings.Contains(got[0], key+": Jobferry takes no notice") {
			t.Errorf("%s: warned %q", key, got)
		}
	}
	for _, key := range annotations(t, "Names on hub Jobs that users set.") {
		if got := p.denied(request{object: newJob(v1alpha1.ManagedByDispatcher, key, "x")}); len(got) > 0 {
			t.Errorf("%s: warned %q", key, got)
		}
	}
}
