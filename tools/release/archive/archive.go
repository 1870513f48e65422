// Package archive writes archives whose bytes depend only on the files in them: they're sorted by
// name, belong to nobody in particular, and have one time.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// File is a regular file of an archive.
type File struct {
	Name string // with slashes
	Mode fs.FileMode
	Data []byte
}

// sorted returns the files by name, and refuses two of one name.
func sorted(files []File) ([]File, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(files); i++ {
		if files[i].Name == files[i-1].Name {
			return nil, fmt.Errorf("the archive has two files %s", files[i].Name)
		}
	}
	return files, nil
}

// Tar writes a tar archive.
func Tar(w io.Writer, files []File, modified time.Time) error {
	files, err := sorted(files)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, file := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Name, Size: int64(len(file.Data)), Mode: int64(file.Mode.Perm()),
			ModTime: modified.Truncate(time.Second), Format: tar.FormatUSTAR,
		}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		if _, err := out.Write(file.Data); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return out.Close()
}

// TarGzip returns a tar archive, compressed.
func TarGzip(files []File, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	// A header of gzip without a name and a time.
	compressor, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := Tar(compressor, files, modified); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Zip returns a zip archive.
func Zip(files []File, modified time.Time) ([]byte, error) {
	files, err := sorted(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, file := range files {
		// The format has times of a time zone that it doesn't name.
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: modified.UTC().Truncate(time.Second)}
		header.SetMode(file.Mode.Perm())
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		if _, err := w.Write(file.Data); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
