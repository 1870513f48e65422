package statement

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SumsFile has the checksums of all other files of a release, as sha256sum writes them.
const SumsFile = "SHA256SUMS"

// File is a file of a release.
type File struct {
	Name   string
	Digest string // its SHA-256, in hexadecimal
}

// Files are all files in a folder but the checksums, by name.
func Files(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, entry := range entries {
		if entry.Name() == SumsFile {
			continue
		}
		digest, err := digest(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: entry.Name(), Digest: digest})
	}
	return files, nil
}

func digest(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Sums is the text of the checksums.
func Sums(files []File) []byte {
	var text bytes.Buffer
	for _, file := range files {
		fmt.Fprintf(&text, "%s  %s\n", file.Digest, file.Name)
	}
	return text.Bytes()
}

// Verify checks that a folder has the files of its checksums, no more, and not others.
func Verify(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err != nil {
		return fmt.Errorf("%s has no whole release: run make release VERSION=... first: %w", dir, err)
	}
	files, err := Files(dir)
	if err != nil {
		return err
	}
	var listed []File
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		digest, name, _ := strings.Cut(lines.Text(), "  ")
		listed = append(listed, File{Name: name, Digest: digest})
	}
	for _, file := range files {
		if !slices.Contains(listed, file) && !isSignature(file.Name) {
			return fmt.Errorf("%s isn't as %s says: run make release again", filepath.Join(dir, file.Name), SumsFile)
		}
	}
	for _, file := range listed {
		if !slices.Contains(files, file) {
			return fmt.Errorf("%s, which %s lists, isn't there: run make release again", filepath.Join(dir, file.Name), SumsFile)
		}
	}
	return nil
}

// SignatureFile is the signature of the checksums, which can't have one there.
const SignatureFile = SumsFile + ".sigstore.json"

func isSignature(name string) bool { return name == SignatureFile }
