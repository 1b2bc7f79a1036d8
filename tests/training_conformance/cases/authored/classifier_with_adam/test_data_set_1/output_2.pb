Ba_newJ³÷=
n+¾¿pl½²;^>