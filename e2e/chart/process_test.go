package chart_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
)

// program builds one of Jobferry's programs, once, and returns its file name.
func program(t *testing.T, name string) string {
	t.Helper()
	file, err := product.Program(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
