package manager_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// folders are those of the packages that the ways in doc.go lead through.
var folders = map[string]string{"job": "job", "dispatch": "dispatch", "clusters": "clusters", "line": "line", "mirror": "../mirror"}

// Most of a way fits in a reader's head.
const maxFunctions, maxFiles = 25, 12

// node is a function or a variable, with the names that it uses.
type node struct {
	file string
	uses map[string]bool
}

// source has the nodes of the packages: by package and name, or package, type and name.
type source map[string]*node

func (s source) add(name, file string, from ast.Node) {
	if s[name] == nil {
		s[name] = &node{file: file, uses: map[string]bool{}}
	}
	ast.Inspect(from, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			s[name].uses[id.Name] = true
		}
		return true
	})
}

func readSource(t *testing.T) source {
	t.Helper()
	s := source{}
	for name, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				s.addDecl(name, file, d)
			}
		}
	}
	return s
}

func (s source) addDecl(pkg, file string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := pkg + "."
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if star, is := of.(*ast.StarExpr); is {
				of = star.X
			}
			if id, is := of.(*ast.Ident); is {
				name += id.Name + "."
			}
		}
		if d.Body != nil {
			s.add(name+d.Name.Name, file, d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, is := spec.(*ast.ValueSpec); is && d.Tok == token.VAR {
				for _, name := range v.Names {
					s.add(pkg+"."+name.Name, file, v)
				}
			}
		}
	}
}

// leadsTo reports whether a node uses another one by way of any others.
func (s source) leadsTo(from, to string) bool {
	last := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	byName := map[string][]string{}
	for name := range s {
		byName[last(name)] = append(byName[last(name)], name)
	}
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		n := s[next[0]]
		next = next[1:]
		for used := range n.uses {
			if used == last(to) {
				return true
			}
			for _, name := range byName[used] {
				if !seen[name] {
					seen[name] = true
					next = append(next, name)
				}
			}
		}
	}
	return false
}

// The ways in doc.go are those that the code takes: each function there is called by one that the
// list names before it, or is the Reconcile of a Job that was enqueued.
func TestWays(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	s, named := readSource(t), regexp.MustCompile(`\b(?:job|dispatch|clusters|line|mirror)(?:\.\w+)+`)
	functions, files := map[string]bool{}, map[string]bool{}
	ways := strings.Split(string(doc), "// # From ")[1:]
	for _, way := range ways {
		var before []string
		for _, name := range named.FindAllString(way, -1) {
			n := s[name]
			if n == nil {
				if name != "dispatch.Snapshot" {
					t.Errorf("there is no %s", name)
				}
				continue
			}
			isNext := len(before) == 0 || name == "job.Reconciler.Reconcile" && s.leadsTo(before[len(before)-1], "job.triggers.Enqueue")
			for _, from := range before {
				isNext = isNext || from == name || s.leadsTo(from, name)
			}
			if !isNext {
				t.Errorf("none of %v calls %s", before, name)
			}
			before, functions[name], files[n.file] = append(before, name), true, true
		}
		if len(before) < 8 {
			t.Errorf("a way has only %v", before)
		}
	}
	if len(ways) != 2 || len(functions) > maxFunctions || len(files) > maxFiles {
		t.Errorf("%d ways with %d functions in %d files", len(ways), len(functions), len(files))
	}
	t.Logf("%d functions in %d files", len(functions), len(files))
}
