package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/jobferry/jobferry/tools/release/statement"
)

// krewManifest fills in .krew.yaml, Krew's manifest of the plugin. It's also the template of
// krew-release-bot, so the functions are the bot's.
func (r *release) krewManifest() error {
	text, err := os.ReadFile(filepath.Join(r.Root, ".krew.yaml"))
	if err != nil {
		return err
	}
	files, err := statement.Files(r.dist)
	if err != nil {
		return err
	}
	manifest, err := krewManifest(string(text), string(r.Version), files)
	if err != nil {
		return fmt.Errorf(".krew.yaml: %w", err)
	}
	return r.write("jobferry.yaml", manifest)
}

func krewManifest(text, version string, files []statement.File) ([]byte, error) {
	release := struct{ TagName string }{version}
	functions := template.FuncMap{
		"indent": func(spaces int, text string) string {
			return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", spaces))
		},
		"addURIAndSha": func(address, _ string) (string, error) {
			uri, err := render(address, release, nil)
			if err != nil {
				return "", err
			}
			for _, file := range files {
				if file.Name == path.Base(string(uri)) {
					return fmt.Sprintf("uri: %s\nsha256: %s", uri, file.Digest), nil
				}
			}
			return "", fmt.Errorf("the release has no file %s", path.Base(string(uri)))
		},
	}
	return render(text, release, functions)
}

func render(text string, data any, functions template.FuncMap) ([]byte, error) {
	parsed, err := template.New("").Funcs(functions).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, data)
	return out.Bytes(), err
}
