module weft.example/lab

go 1.23
