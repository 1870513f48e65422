package bench

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
)

// testOptions checks that the defaults can be used, and that they can't once they are spoilt.
func testOptions[O any, P interface {
	*O
	Validate() error
}](t *testing.T, defaults O, spoils map[string]func(P)) {
	t.Helper()
	if err := P(&defaults).Validate(); err != nil {
		t.Errorf("the defaults can't be used: %v", err)
	}
	for name, spoil := range spoils {
		o := defaults
		spoil(&o)
		if P(&o).Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// builtManager is the manager's program, which all tests share.
func builtManager(t *testing.T) string {
	t.Helper()
	program, err := product.Program(managerProgram)
	if err != nil {
		t.Fatal(err)
	}
	return program
}
