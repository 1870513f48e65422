package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// Limits bound what is unpacked: bytes, members of the stream, and as many directories that they
// are in.
type Limits struct {
	Bytes   int64
	Members int
}

// memberBytes is more than a member of a stream has beside the bytes of a file.
const memberBytes = 16 << 10

// stream is the most bytes that a stream may have.
func (l Limits) stream() int64 {
	beside := int64(l.Members+1) * memberBytes
	return l.Bytes + min(beside, math.MaxInt64-l.Bytes)
}

// limitedStream fails after so many bytes: headers that belong to no member have no end.
type limitedStream struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (s *limitedStream) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errLimit
	}
	n, err := s.Reader.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}

// Result is what was unpacked or packed.
type Result struct {
	Files int
	Bytes int64
	// Skipped are members that are neither files nor directories, at most maxSkipped.
	Skipped []string
}

const maxSkipped = 20

// maxName is how long a member's name may be, as on Linux (PATH_MAX). What is done for each of the
// directories in it takes as long again.
const maxName = 4096

// errLimit is returned for a stream that is over a limit.
var errLimit = errors.New("the limit is reached")

// Target says where members go: the member from becomes to, below the root.
type Target struct {
	Root *os.Root
	// From is the name that was asked for; "." stands for all members.
	From string
	// To is the name that it gets.
	To string
}

// Unpack writes the files of a tar stream. After an error, what has been written stays.
func Unpack(from io.Reader, to Target, limits Limits) (Result, error) {
	in := tar.NewReader(&limitedStream{from, limits.stream()})
	var done Result
	directories, before := 0, "." // that of the last member
	for members := 0; ; members++ {
		header, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, fmt.Errorf("the archive is incomplete: %w", err)
		case len(header.Name) > maxName:
			return done, fmt.Errorf("%w: a name has %d characters, more than %d", errLimit, len(header.Name), maxName)
		case members == limits.Members:
			return done, fmt.Errorf("%w: more than %d files", errLimit, limits.Members)
		}
		directory := path.Dir(path.Clean(header.Name))
		if directories += entered(directory, before); directories > limits.Members {
			return done, fmt.Errorf("%w: more than %d directories", errLimit, limits.Members)
		}
		before = directory
		if err := to.unpack(in, header, limits.Bytes, &done); err != nil {
			if at := (*fs.PathError)(nil); errors.As(err, &at) {
				at.Path = text.Clean(at.Path, maxName) // in one line
			}
			return done, err
		}
	}
}

// entered is how many directories a directory is, or is in, that the one before it isn't and isn't
// in. tar goes through a tree depth first, and so enters each directory once: none has to be
// remembered. One name can be of thousands of directories.
func entered(directory, before string) (n int) {
	for ; directory != "." && directory != "/"; directory = path.Dir(directory) {
		if below, is := strings.CutPrefix(before, directory); is && (below == "" || below[0] == '/') {
			break
		}
		n++
	}
	return n
}

// unpack writes one member.
func (t Target) unpack(in io.Reader, header *tar.Header, limit int64, done *Result) error {
	name, err := t.place(header.Name)
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return t.Root.MkdirAll(name, 0o755)
	case tar.TypeReg, tar.TypeGNUSparse:
		written, err := t.write(name, in, header.FileInfo().Mode().Perm(), limit-done.Bytes)
		done.Files++
		done.Bytes += written
		return err
	case tar.TypeXGlobalHeader:
		return nil
	default:
		if len(done.Skipped) < maxSkipped {
			done.Skipped = append(done.Skipped, header.Name)
		}
		return nil
	}
}

// place returns the name below the root for a member.
func (t Target) place(member string) (string, error) {
	cleaned := path.Clean(member)
	rest, below := strings.CutPrefix(cleaned, t.From+"/")
	switch {
	case t.From == ".":
		rest = cleaned
	case cleaned == t.From:
		rest = "."
	case !below:
		return "", fmt.Errorf("the archive has %q, which isn't below %q, that was asked for", member, t.From)
	}
	name := filepath.Join(t.To, filepath.FromSlash(rest))
	if !filepath.IsLocal(filepath.FromSlash(rest)) || !filepath.IsLocal(name) {
		return "", fmt.Errorf("the archive has %q, which would be outside of the directory", member)
	}
	return name, nil
}

// write writes a file of at most limit bytes.
func (t Target) write(name string, from io.Reader, mode fs.FileMode, limit int64) (int64, error) {
	if err := t.Root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return 0, err
	}
	file, err := t.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o600)
	if err != nil {
		return 0, err
	}
	written, err := io.Copy(file, io.LimitReader(from, limit))
	if err == nil && written == limit {
		if n, _ := io.ReadFull(from, make([]byte, 1)); n > 0 { // its error is the next member's
			err = fmt.Errorf("%w: more bytes", errLimit)
		}
	}
	return written, errors.Join(err, file.Close())
}
