// Package checkout finds the files of the checkout that a test or program runs in. It doesn't ask
// where its own source is, which -trimpath takes out of programs.
package checkout

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Root is the folder of the checkout around the working directory; tests work in the folder of
// their package.
var Root = sync.OnceValues(func() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "e2e", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no checkout of Jobferry around %s: run this in one", wd)
		}
	}
})

// Path is something in the checkout, by its path from the root. It panics where there is none: what
// needs one calls Root at its start.
func Path(path ...string) string {
	root, err := Root()
	if err != nil {
		panic(err)
	}
	return filepath.Join(append([]string{root}, path...)...)
}
